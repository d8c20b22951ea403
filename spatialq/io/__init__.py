"""Readers: files to Arrow batches."""
