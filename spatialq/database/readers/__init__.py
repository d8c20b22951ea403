"""The readers of files as SQL functions."""
