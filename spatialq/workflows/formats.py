"""The formats of files that are read and written, for people and programs."""

from typing import Any

from spatialq.database.writers import Writer, writers
from spatialq.io.formats import NAMES, Reader, readers

TAKES = {
    "rows": "any rows",
    "points": "rows with x, y, z",
    "cells": "cells x, y, z of a grid",
    "geometries": "rows with a geometry, or x, y",
    "GlobalIds": "rows with GlobalIds of a model",
    "clashes": "rows with GlobalIds a, b",
}


def formats() -> list[dict[str, Any]]:
    """List each format once if it is read, and once if it is written.

    Returns
    -------
    list of dict
        format, endings, use, skips (what a reader need not read where a query does not need it),
        keeps, loses, and needs: the optional dependencies.
    """
    read = (_row(each, f"read: {NAMES[each.kind]}", each.skips) for each in readers())
    written = (_row(each, f"write: {TAKES[each.takes]}") for each in writers())
    return [*read, *written]


def _row(each: Reader | Writer, use: str, skips: str = "") -> dict[str, Any]:
    return {
        "format": each.name,
        "endings": " ".join(each.suffixes),
        "use": use,
        "skips": skips,
        "keeps": each.keeps,
        "loses": each.loses,
        "needs": each.extra and f"spatialq[{each.extra}]",
    }
