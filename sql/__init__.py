"""The SQL files: each holds the table macros of one function."""
