"""Elements of several models, as the writers of one coordinated file take them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spatialq.runtime.arrays import Floats, Int32s


@dataclass(frozen=True)
class Element:
    """An element of a coordinated file.

    Parameters
    ----------
    global_id, ifc_class : str
    vertices : float64[n, 3]
        Metres, in the coordinates of all.
    faces : int32[m, 3]
    model : str
        Name of the file that it is from, which becomes a building.
    colour : tuple of int
        Red, green, blue up to 255.
    colour_name : str
    properties : mapping of str to mapping
        Property sets: property to value.
    """

    global_id: str
    ifc_class: str
    name: str | None
    description: str | None
    storey: str | None
    model: str
    vertices: "Floats"
    faces: "Int32s"
    is_closed: bool | None
    colour: tuple[int, int, int]
    colour_name: str
    properties: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
