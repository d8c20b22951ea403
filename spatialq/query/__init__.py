"""Queries written for the user: the builder, and the SQL that it and scripts consist of."""
