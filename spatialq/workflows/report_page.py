"""The report on a delivery of point clouds as a page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.export.map_picture import draw_map
from spatialq.export.page import Cell, Html, figure, table, tag

if TYPE_CHECKING:
    from spatialq.export.raster import Raster

CLASSES = {
    0: "never classified", 1: "unclassified", 2: "ground", 3: "low vegetation",
    4: "medium vegetation", 5: "high vegetation", 6: "building", 7: "low noise",
    8: "model key point", 9: "water", 10: "rail", 11: "road surface", 12: "overlap",
    13: "wire, guard", 14: "wire, conductor", 15: "transmission tower", 16: "wire connector",
    17: "bridge deck", 18: "high noise",
}  # fmt: skip
"""Names of the ASPRS' classes."""
FIRST_DAY, BILLION = datetime(1980, 1, 6, tzinfo=UTC), 1_000_000_000
ENDS = ("xmin", "ymin", "zmin", "xmax", "ymax", "zmax")
MOST_OUTLINES = 500
"""Files of which maps have outlines."""

Row = Mapping[str, Any]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Map:
    """A map of a report."""

    id: str
    legend: str
    values: "Raster"
    caption: str


def content(report: Mapping[str, Any], maps: Sequence[Map], boxes: Sequence[Box]) -> Iterator[Html]:
    """Write all below the title of a page."""
    files = report["files"]
    unit = report["unit"] or "units"
    yield tag("p", f"{report['points']:,} points in {len(files):,} files; lengths in {unit}.")
    yield tag("h2", "What is odd")
    if report["odd"]:
        yield tag("ul", *(tag("li", each) for each in report["odd"]), id="odd")
    else:
        yield tag("p", "Nothing that was looked for.", id="odd")
    yield tag("h2", "Density")
    yield from _density(report)
    outlines = boxes if len(boxes) <= MOST_OUTLINES else ()
    for each in maps:
        png, wide, tall = draw_map(each.values, each.legend, report["unit"], outlines)
        yield figure(each.id, png, wide, tall, each.caption, each.caption)
    yield tag("h2", "Strips")
    yield from _strips(report)
    yield tag("h2", "Files")
    yield from _files(files)
    if report["unreadable"]:
        yield table(
            "Files that cannot be read",
            ("file", "reason"),
            ((_brief(each["file"]), each["reason"]) for each in report["unreadable"]),
        )
    yield table(
        "Coordinate reference systems",
        ("CRS", "files", "points"),
        ((each["crs"] or "none", len(each["files"]), each["points"]) for each in report["crs"]),
    )
    yield tag("h2", "Classes and returns")
    total = max(report["points"], 1)
    yield table(
        "Points by class",
        ("class", "name", "points", "%"),
        ((each["class"], CLASSES.get(each["class"]), each["points"],
          _percent(each["points"], total)) for each in report["classes"]),
    )  # fmt: skip
    yield table(
        "Points by return",
        ("return", "of", "points", "%"),
        ((each["return"], each["of_returns"], each["points"], _percent(each["points"], total))
         for each in report["returns"]),
    )  # fmt: skip


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 2)


def _density(report: Row) -> Iterator[Html]:
    if (density := report["density"]) is None:
        yield tag("p", "Not known in degrees.")
        return
    square = "m²" if report["unit"] else "square unit"
    rows: list[tuple[Cell, Cell]] = [
        (f"covered, {square}", round(density["area"])),
        (f"points per {square}", density["mean"]),
        (f"first returns per {square}", density["pulses"]),
        ("median of the cells", density["median"]),
        ("5 % of the cells have less than", density["low"]),
        ("side of a cell", report["cell_size"]),
    ]
    if ground := report["ground"]:
        rows += [
            (f"ground points per {square}", ground["density"]),
            ("ground points, %", _percent(ground["share"], 1)),
            ("cells without ground points, %", _percent(ground["cells_without"], 1)),
        ]
    yield table("Density", ("", "value"), rows)
    if density["holes"]:
        yield table(
            "Areas without points that others surround, the largest",
            (f"area, {square}", "x", "y"),
            ((each["area"], each["x"], each["y"]) for each in density["holes"]),
        )


def _strips(report: Row) -> Iterator[Html]:
    unit = report["unit_of_height"] or "units"
    yield table(
        f"Strips, told apart by {report['strips_are']}",
        ("strip", "points", "files", "level cells", f"precision, {unit}", f"offset, {unit}"),
        ((_brief(each["strip"]), each["points"], each["files"], each["cells"], each["precision"],
          each["offset"]) for each in report["strips"]),
    )  # fmt: skip
    if report["strip_pairs"]:
        yield table(
            f"Heights of the first strip above the second where they overlap, {unit}",
            ("strip", "other", "cells", "median", "root mean square", "95 % are within"),
            ((_brief(each["a"]), _brief(each["b"]), each["cells"], each["median"], each["rms"],
              each["within_95"]) for each in report["strip_pairs"]),
        )  # fmt: skip
    if report["overlaps"]:
        yield table(
            f"Files that overlap; heights of the first above the second, {unit}",
            ("file", "other", "area", "points", "of the other", "in common", "median",
             "root mean square"),
            ((_brief(each["a"]), _brief(each["b"]), round(each["area"]), each["points_a"],
              each["points_b"], each["duplicates"], each["median"], each["rms"])
             for each in report["overlaps"]),
        )  # fmt: skip


def _files(files: Sequence[Row]) -> Iterator[Html]:
    yield table(
        "Files",
        ("file", "format", "CRS", "points", "density", *ENDS, "outside header's box", "duplicates",
         "scale", "offset"),
        ((_brief(each["file"]), each["format"], each["crs"] or "none", each["points"],
          each["density"], *(each[name] for name in ENDS),
          each["outside"], each["duplicates"], _numbers(each["scale"]), _numbers(each["offset"]))
         for each in files),
    )  # fmt: skip
    yield table(
        "Attributes",
        ("file", "strips", "classes", "intensity", "red", "green", "blue", "GPS time", "withheld",
         "overlap", "synthetic"),
        ((_brief(each["file"]), len(each["strips"]), _numbers(each["classes"]),
          *(_numbers(each[name], " to ") for name in ("intensity", "red", "green", "blue")),
          _times(each), each["withheld"], each["overlap"], each["synthetic"]) for each in files),
    )  # fmt: skip


def _brief(name: Cell) -> Cell:
    return Path(name).name if isinstance(name, str) else name


def _numbers(values: Sequence[float] | None, between: str = ", ") -> str:
    return between.join(f"{value:.12g}" for value in values or ())


def _times(row: Row) -> str:
    """Write the range of times: as dates where the file tells from when they are counted."""
    if row["gps_time"] is None or row["time"] != "adjusted":
        return _numbers(row["gps_time"], " to ")
    try:
        days = [FIRST_DAY + timedelta(seconds=BILLION + each) for each in row["gps_time"]]
    except OverflowError:
        return _numbers(row["gps_time"], " to ")
    return " to ".join(f"{day:%Y-%m-%d %H:%M}" for day in days)
