"""Writers: Arrow batches or tables to files."""
