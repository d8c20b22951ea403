"""The command line: commands read options, call a workflow and print what it returns."""
