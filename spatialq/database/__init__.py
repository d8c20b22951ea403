"""DuckDB: connections, macros, tables of sources, and loading files into tables."""
