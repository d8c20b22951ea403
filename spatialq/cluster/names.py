"""Names in the folder of a job, and how errors of jobs begin."""

CALLER = "cluster.run"
MANIFEST, JOURNAL, LOCK = "job.json", "journal.jsonl", ".lock"
PARTS, STAGES, UNFINISHED = "parts", "stages", ".unfinished"
OWN = (PARTS, STAGES, UNFINISHED)
"""Folders that a job makes in its own."""
