"""File to file: what the commands of the command line do. Workflows may name functions."""
