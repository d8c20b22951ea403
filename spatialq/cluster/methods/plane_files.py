"""Passes of a search for planes as values of JSON, and back."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from spatialq.udfs.detect_planes.octree import Cube
from spatialq.udfs.detect_planes.passes import Pass


def values_of(wanted: Pass) -> dict[str, Any]:
    """Write a pass, without its arrays, as values of JSON."""
    return asdict(replace(wanted, arrays={}))


def pass_of(values: Mapping[str, Any], arrays: dict[str, Any]) -> Pass:
    """Read a pass."""
    cube = cube_of(values["cube"])
    return Pass(**{**values, "cube": cube, "arrays": arrays})


def cube_of(values: Mapping[str, Any]) -> Cube:
    """Read a cube."""
    x, y, z = values["low"]
    return Cube((x, y, z), values["side"])
