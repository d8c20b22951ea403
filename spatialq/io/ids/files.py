"""Reads IDS files that can be used: valid XML of IDS 1.0 whose specifications can be met."""

from pathlib import Path

from spatialq.io.ids.audit import audit
from spatialq.io.ids.reader import READER, Ids, parsed


def read_ids(path: Path, reader: str = READER) -> Ids:
    """Read an IDS file (`.ids`, `.xml`; version 1.0).

    Raises
    ------
    FileError
        If it is missing, too large, no XML, has a document type, or is no valid IDS; with the line.
    """
    ids = parsed(path, reader)
    audit(ids, reader)
    return ids
