"""Files of a verdict: coloured points, topics, a model and a picture; see `docs/verdict.md`."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.export.atomic import whole
from spatialq.export.bcf import Comment, Topic, View, write_archive
from spatialq.export.clash_view import COLOURS as SIDES
from spatialq.export.clash_view import radius_of, see
from spatialq.export.coordinated import Element
from spatialq.export.coordinated_ifc import guid_of, write_coordinated_ifc
from spatialq.export.rasteriser import render
from spatialq.runtime.arrays import Bytes, Floats, Ints
from spatialq.workflows.clash_models import short_names
from spatialq.workflows.cloud_files import write_with_columns
from spatialq.workflows.rendering import overview

if TYPE_CHECKING:
    import pyarrow as pa

    from spatialq.io.source import PointSource, Progress


COMMAND = "verdict"
COLOURS = {
    "installed": (90, 170, 100),
    "displaced": (240, 140, 30),
    "not found": (214, 39, 40),
    "uncertain": (235, 205, 60),
    "occluded": (130, 140, 170),
    "not enough data": (170, 150, 190),
    "no data": (200, 203, 208),
    "not applicable": (225, 228, 231),
}
"""Of elements, by status."""
ISSUES = ("not found", "displaced")
"""Statuses of which there are topics."""
SEVERITY = (*ISSUES, *(status for status in COLOURS if status not in ISSUES))
FADED = "40C8C8C8"
"""AARRGGBB of what is around an element."""
RANGE = 0.05
"""Metres of deviation at which a point has the full colour."""
COLD, EVEN, WARM, UNKNOWN = (40, 90, 200), (90, 190, 110), (220, 50, 40), (150, 150, 150)
"""Of points behind a surface, on it, before it, and far from all."""
MOST_OTHERS = 40
"""Elements around one that are shown with it."""
PROPERTY_SET = "Verdict"
DECIMALS = 4
"""Of coordinates of points in metres, far below the noise of a scan: moved ones have digits without
end, which no LAS file can keep."""


@dataclass(frozen=True)
class Verdict:
    """Elements and what a scan shows of them.

    Parameters
    ----------
    rows : list of dict
        One per element: what it is, and the columns of `coverage`.
    elements : pyarrow.Table
        Of `read_ifc`, in the order of the rows.
    meshes : Meshes
    clouds : sequence of PointSource
    points : float64[3, n]
        In the coordinates of the models, metres.
    point_id : int64[n]
        Positions in the clouds, ascending.
    """

    rows: list[dict[str, Any]]
    elements: "pa.Table"
    meshes: Meshes
    clouds: "Sequence[PointSource]"
    points: Floats
    point_id: Ints


def write_points(verdict: Verdict, deviation: Floats, target: Path, tick: "Progress") -> None:
    """Write the points in the coordinates of the models, coloured by their deviation."""
    rows = sum(cloud.rows for cloud in verdict.clouds)
    at = verdict.point_id
    keep = None if len(at) == rows else np.zeros(rows, np.bool_)
    if keep is not None:
        keep[at] = True

    def by_position(values: Any) -> Any:
        if keep is None:
            return values
        spread = np.zeros(rows, values.dtype)
        spread[at] = values
        return spread

    colours = 257 * colours_of(deviation).astype(np.uint16)
    rounded = np.round(verdict.points, DECIMALS)
    added = dict(zip("xyz", map(by_position, rounded), strict=True))
    for name, channel in zip(("red", "green", "blue"), colours.T, strict=True):
        added[name] = by_position(np.ascontiguousarray(channel))
    added["deviation"] = by_position(deviation.astype(np.float32))
    write_with_columns(verdict.clouds, target, added, tick, crs=None, keep=keep)


def colours_of(deviation: Floats) -> Bytes:
    """Give red, green and blue of points by their signed distance in metres; NaN is far away."""
    share = np.clip(deviation / RANGE, -1, 1)[:, None]
    outer = np.where(share < 0, COLD, WARM)
    mixed = EVEN + np.abs(share) * (outer - np.array(EVEN))
    mixed[np.isnan(deviation)] = UNKNOWN
    colours: Bytes = np.round(mixed).astype(np.uint8)
    return colours


def write_picture(verdict: Verdict, target: Path) -> None:
    """Draw the elements, coloured by status; those of topics before what hides them."""
    colours = np.array([COLOURS[row["status"]] for row in verdict.rows], np.uint8)
    camera = overview(COMMAND, verdict.meshes.vertices)
    picture = render(camera, verdict.meshes, colours)
    issues = np.flatnonzero([row["status"] in ISSUES for row in verdict.rows])
    if issues.size:
        front = render(camera, verdict.meshes.take(issues), colours[issues])
        picture.pixels[front.item >= 0] = front.pixels[front.item >= 0]
    with whole(target) as partial:
        partial.write_bytes(picture.png())


def write_topics(verdict: Verdict, target: Path) -> int:
    """Write a topic for each element that is displaced or not found."""
    return write_archive(target, _topics(verdict))


def _topics(verdict: Verdict) -> Iterator[Topic]:
    numbers = [k for k, row in enumerate(verdict.rows) if row["status"] in ISSUES]
    numbers.sort(key=lambda k: gravity(verdict.rows[k]))
    from spatialq.geometry import boxes

    limits = boxes.of(verdict.meshes)
    for k in numbers:
        row = verdict.rows[k]
        what = f"{row['ifc_class']} {row['name'] or ''}".strip()
        yield Topic(
            "\n".join(("verdict", row["global_id"])),
            f"{what}: {said(row)}",
            _view(verdict, k, limits),
            topic_type="Issue",
            labels=[row["status"], *filter(None, [row["storey"]])],
            description=_described(row),
            models=(Path(row["file_name"]).name,),
            comments=(Comment(said(row)),),
        )


def gravity(row: dict[str, Any]) -> tuple[int, float]:
    """Give what sorts rows: what is not found first, then what is displaced, farthest first."""
    return SEVERITY.index(row["status"]), -float(np.linalg.norm(movement(row)))


def movement(row: dict[str, Any]) -> Floats:
    """Give the metres by which an element is moved; 0 along axes where that is unknown."""
    return np.array([row[name] or 0.0 for name in ("dx", "dy", "dz")])


def said(row: dict[str, Any]) -> str:
    """Say the verdict on an element."""
    if row["status"] != "displaced":
        return str(row["status"])
    by = movement(row)
    along = ", ".join(f"d{axis} {1000 * each:.0f}" for axis, each in zip("xyz", by, strict=True))
    return f"displaced by {1000 * np.linalg.norm(by):.0f} mm ({along})"


def _described(row: dict[str, Any]) -> str:
    measures = (
        f"{name} {value:.4g}" for name, value in row.items()
        if isinstance(value, float)
    )  # fmt: skip
    return f"{row['global_id']}: {said(row)}; {', '.join(measures)}"


def _view(verdict: Verdict, k: int, limits: Floats) -> View:
    """See an element; one that is displaced with its copy where it was built."""
    own = verdict.meshes.take(np.array([k]))
    by = movement(verdict.rows[k])
    is_moved = verdict.rows[k]["status"] == "displaced"
    built = Meshes(own.vertices + by, own.faces, own.vertex_starts, own.face_starts)
    pair = own.followed_by(built) if is_moved else own
    point = (limits[k, :3] + limits[k, 3:]) / 2
    low, high = limits[:, :3], limits[:, 3:]
    apart = np.maximum(np.maximum(low - point, point - high), 0).max(axis=1)
    apart[k] = np.inf
    near = np.argsort(apart, kind="stable")[:MOST_OTHERS]
    near = near[apart[near] <= radius_of(point, pair)]
    seen = see(point, pair, verdict.meshes.take(near))
    ids = [verdict.rows[int(near[each])]["global_id"] for each in seen.others]
    global_id = verdict.rows[k]["global_id"]
    faded = [each for each in dict.fromkeys(ids) if each != global_id]
    red = "".join(f"{each:02X}" for each in SIDES[0])
    coloured = {red: [global_id], FADED: faded} if faded else {red: [global_id]}
    return View(
        seen.camera,
        (global_id,),
        coloured,
        (global_id, *faded),
        seen.picture.png(),
        seen.camera.target if seen.is_cut else None,
    )


def write_model(verdict: Verdict, target: Path) -> None:
    """Write the elements, coloured by status, with a property set of the verdict."""
    write_coordinated_ifc(target, _elements(verdict), "Verdict")


def _elements(verdict: Verdict) -> Iterator[Element]:
    names = short_names(verdict.elements["file_name"].unique().to_pylist())
    columns = [name for name in verdict.elements.column_names if name != "mesh"]
    taken: set[str] = set()
    meshes = verdict.meshes
    for k, row in enumerate(verdict.rows):
        of_element = {name: verdict.elements[name][k].as_py() for name in columns}
        own = row["global_id"]
        if own in taken:  # IFC cannot have it twice
            own = guid_of("element", own, of_element["file_name"], str(of_element["step_id"]))
        taken.add(own)
        properties = json.loads(of_element["properties"] or "{}")
        measured = {
            name: value for name, value in row.items()
            if name not in columns and value is not None
        }  # fmt: skip
        yield Element(
            own, of_element["ifc_class"], of_element["name"], of_element["description"],
            of_element["storey"], names[of_element["file_name"]],
            meshes.vertices[slice(*meshes.vertex_starts[k : k + 2])],
            meshes.faces[slice(*meshes.face_starts[k : k + 2])],
            of_element["is_closed"], COLOURS[row["status"]], row["status"],
            {**properties, PROPERTY_SET: {_property(n): v for n, v in measured.items()}},
        )  # fmt: skip


def _property(name: str) -> str:
    """Name a property as IFC does: `could_be_seen` is CouldBeSeen."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
