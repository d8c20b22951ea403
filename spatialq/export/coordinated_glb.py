"""A coordinated glTF file: a node for each element of several models, named by its GlobalId."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spatialq.export.atomic import whole
from spatialq.export.coordinated import Element
from spatialq.export.tiles.colours import linear
from spatialq.export.tiles.gltf import TRIANGLES, Glb, y_up
from spatialq.runtime.arrays import Array


def write_coordinated_glb(path: Path, elements: Sequence[Element]) -> None:
    """Write elements as a `.glb` file; the same elements give the same bytes.

    Viewers have positions in single precision, so the origin of the file is near to the elements:
    at whole metres, which the asset says in its `extras`.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    glb = Glb(compress=False)
    lows = np.array([each.vertices.min(axis=0) for each in elements]).reshape(-1, 3)
    origin = np.floor(lows.min(axis=0)) if len(lows) else np.zeros(3)
    glb.say(origin=origin.tolist())
    materials: dict[tuple[int, int, int], int] = {}
    for each, low in zip(elements, lows, strict=True):
        if each.colour not in materials:
            materials[each.colour] = glb.material(
                name=each.colour_name,
                pbrMetallicRoughness={
                    "baseColorFactor": [*_linear(each.colour), 1.0],
                    "metallicFactor": 0.0,
                    "roughnessFactor": 1.0,
                },
                doubleSided=True,
            )
        position = glb.exact_positions(each.vertices - low)
        faces = glb.indices(np.ascontiguousarray(each.faces, np.uint32).ravel())
        glb.primitive(
            TRIANGLES, {"POSITION": position}, indices=faces, material=materials[each.colour]
        )
        extras = {
            "ifc_class": each.ifc_class, "name": each.name, "storey": each.storey,
            "file": each.model, "shown_as": each.colour_name,
        }  # fmt: skip
        (place,) = y_up((low - origin)[None])
        glb.node(name=each.global_id, translation=place.tolist(), extras=extras)
    with whole(path) as partial:
        partial.write_bytes(glb.to_bytes())


def _linear(colour: tuple[int, int, int]) -> Array:
    return np.asarray(linear(np.array(colour) / 255, 16) / (2**16 - 1))
