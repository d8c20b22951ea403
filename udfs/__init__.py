"""The spatial functions: a folder each."""
