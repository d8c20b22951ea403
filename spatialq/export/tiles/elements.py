"""Elements of building models as a tile: one mesh with feature ids, and a table of properties.

What is opaque and what is glass are two primitives of the mesh. Each vertex has the number of its
element, which is the row of the property table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.errors import FileError
from spatialq.export.atomic import WRITER, whole_with_parts
from spatialq.runtime.arrays import Floats

from .colours import linear
from .gltf import TRIANGLES, Glb
from .metadata import add_table
from .place import Place
from .tileset import box, replaced_by, tileset, to_json

FEATURES = "EXT_mesh_features"
STEP = 1e-3
"""Metres of a step of quantised positions at most; larger models have float32."""
MOST_STEPS = 65535
MOST_SHORT = 65535
"""Feature ids of 16 bits; above, they are float32, which has all whole numbers up to 2**24."""
CONTENT = "elements.glb"


@dataclass(frozen=True)
class Elements:
    """Elements in the coordinates of a map, or of their model.

    Attributes
    ----------
    meshes : Meshes
        Of k elements; of those without faces nothing is drawn.
    colours : float64[k, 4]
        sRGB and opacity, from 0 to 1.
    properties : mapping of str to sequence of str
        A value for each element; '' where there is none.
    """

    meshes: Meshes
    colours: Floats
    properties: Mapping[str, Sequence[str]]


def write_elements(
    target: Path, elements: Elements, place: Place, extras: dict[str, Any], *, compress: bool
) -> None:
    """Write a tileset of one tile.

    Parameters
    ----------
    target : Path
        The tileset; its content goes to a folder beside it.
    elements : Elements
    place : Place
    extras : dict
        Kept in the tileset, for people.
    compress : bool

    Raises
    ------
    FileError
        If it cannot be written, or no element has a face.
    """
    if not len(elements.meshes.faces):
        raise FileError.of(WRITER, target, "tiles need at least one element with a mesh")
    content, low, high = element_tile(elements, place, compress=compress)
    with whole_with_parts(target, replaced_by(target)) as (file, folder, name):
        (folder / CONTENT).write_bytes(content)
        root = {
            "boundingVolume": {"box": box(low, high)},
            "geometricError": 0.0,
            "refine": "REPLACE",
            "content": {"uri": f"{name}/{CONTENT}"},
            "transform": list(place.transform),
        }
        error = float(np.linalg.norm(high - low))
        file.write_text(to_json(tileset(root, error, {**extras, "folder": name})), encoding="utf-8")


def element_tile(
    elements: Elements, place: Place, *, compress: bool
) -> tuple[bytes, Floats, Floats]:
    """Make the content of the tile.

    Returns
    -------
    bytes
    low, high : float64[3]
        Box in metres of the frame.
    """
    meshes = elements.meshes
    used = np.unique(meshes.global_faces)
    local = place.local(meshes.vertices)
    low, high = local[used].min(axis=0), local[used].max(axis=0)
    glb = Glb(compress=compress)
    count = len(meshes)
    is_clear = elements.colours[:, 3] < 1
    for clear in (False, True):
        faces = meshes.global_faces[is_clear[meshes.face_mesh] == clear]
        if not faces.size:
            continue
        vertices, indices = np.unique(faces, return_inverse=True)
        feature = np.searchsorted(meshes.vertex_starts, vertices, "right") - 1
        attributes = {
            "POSITION": _positions(glb, local[vertices], low, high),
            "COLOR_0": _colours(glb, elements.colours[feature], is_clear=clear),
            "_FEATURE_ID_0": glb.attribute(
                feature.astype(np.uint16 if count <= MOST_SHORT else np.float32)
            ),
        }
        ids = {"featureCount": count, "attribute": 0}
        ids |= {"propertyTable": 0} if elements.properties else {}
        glb.primitive(
            TRIANGLES,
            attributes,
            indices=glb.indices(indices.ravel().astype(np.uint32)),
            material=_material(glb, is_clear=clear),
            extensions={FEATURES: {"featureIds": [ids]}},
        )
    glb.extension(FEATURES)
    if elements.properties:
        add_table(glb, "element", elements.properties)
    return glb.to_bytes(), low, high


def _positions(
    glb: Glb,
    local: Floats,
    low: Floats,
    high: Floats,
) -> int:
    """Add positions, quantised over the box of all elements unless that is too coarse."""
    extent = high - low
    if extent.max() > STEP * MOST_STEPS:
        return glb.exact_positions(local)
    width = np.where(extent > 0, extent / MOST_STEPS, STEP)
    steps = np.rint((local - low) / width)
    turned = np.stack(
        [steps[:, 0], steps[:, 2], np.rint(extent[1] / width[1]) - steps[:, 1]], axis=1
    )
    ends = np.array([low[0], low[2], high[1]])
    return glb.positions(turned.astype(np.uint16), ends, width[[0, 2, 1]])


def _colours(glb: Glb, srgb: Floats, *, is_clear: bool) -> int:
    colours = linear(srgb[:, :3], 16)
    if is_clear:
        opacity = np.rint(srgb[:, 3:] * (2**16 - 1)).astype(np.uint16)
        colours = np.concatenate([colours, opacity], axis=1)
    return glb.attribute(colours, normalized=True)


def _material(glb: Glb, *, is_clear: bool) -> int:
    mode = {"alphaMode": "BLEND"} if is_clear else {}
    surface = {"metallicFactor": 0.0, "roughnessFactor": 1.0}
    return glb.material(pbrMetallicRoughness=surface, doubleSided=True, **mode)
