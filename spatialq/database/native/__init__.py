"""The extension of DuckDB through which columns reach kernels, and rows come back, without lists.

`extension.c` says what it puts on a database; `library` loads it; `calls` runs kernels for it.
"""
