"""Arrow arrays from DuckDB to a kernel, and its result back."""
