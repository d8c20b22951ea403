"""The command line: one module for each command, options derived from the declarations."""
