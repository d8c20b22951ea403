"""What is odd about a delivery of point clouds, as sentences."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

APART, RMS_APART = 0.05, 0.08
"""Metres from which heights of strips are said to differ: as a median; and as a root mean square,
which is the limit of the Lidar Base Specification of the USGS for quality levels 1 and 2."""
MOST = 5
"""Names or strips that a sentence has."""
NOISE, NO_CLASS = (7, 18), (0, 1)
RESERVED = range(19, 64)
"""Classes to which the ASPRS has given no meaning."""
EIGHT_BIT = 255
COLOURS = ("red", "green", "blue")
MUCH_NOISE = 0.01

Row = dict[str, Any]


def sentences(report: Mapping[str, Any], metres: float) -> Iterator[str]:
    """Say what is odd, the weightiest first.

    Parameters
    ----------
    report : mapping
        As `spatialq.workflows.report.write_report` gives it, but for these sentences.
    metres : float
        Metres in a unit of height.
    """
    files: list[Row] = report["files"]
    for each in report["unreadable"]:
        yield f"{_names([each])} cannot be read: {each['reason']}."
    yield from _systems(report)
    yield from _boxes(files)
    yield from _repeated(report)
    yield from _apart(report, metres)
    yield from _holes(report)
    yield from _formats(files)
    yield from _attributes(report)
    for each in files:
        for text in each["warnings"]:
            yield f"{_names([each])}: {text}."


def _names(rows: Sequence[Row]) -> str:
    """Name files for people."""
    shown = ", ".join(f"'{Path(row['file']).name}'" for row in rows[:MOST])
    return shown if len(rows) <= MOST else f"{shown} and {len(rows) - MOST} more"


def _points(count: int) -> str:
    return f"{count:,} {'point' if count == 1 else 'points'}"


def _systems(report: Mapping[str, Any]) -> Iterator[str]:
    first, *others = report["crs"]
    for each in others:
        rows = [{"file": name} for name in each["files"]]
        system = "no CRS" if each["crs"] is None else f"the CRS {each['crs']}"
        most = "no CRS" if first["crs"] is None else first["crs"]
        yield (
            f"{_names(rows)}: {system}, where most points have {most}; not in the maps, and not "
            "compared with other files."
        )
    if not others and first["crs"] is None:
        yield "No file names a CRS; lengths are taken as metres."
    if report["density"] is None:
        yield (
            f"The coordinates are in degrees ({first['crs']}), so that density, overlaps and "
            "strips are not known; reproject the files first."
        )


def _boxes(files: Sequence[Row]) -> Iterator[str]:
    for each in files:
        if each["outside"]:
            yield (
                f"{_names([each])}: {each['outside']:,} of {_points(each['points'])} outside of "
                "the box in its header."
            )
        if not each["points"]:
            yield f"{_names([each])} has no points."


def _repeated(report: Mapping[str, Any]) -> Iterator[str]:
    for each in report["files"]:
        if each["duplicates"]:
            share = 100 * each["duplicates"] / each["points"]
            yield (
                f"{_names([each])}: {_points(each['duplicates'])} ({share:.2g} %) "
                f"{'repeats' if each['duplicates'] == 1 else 'repeat'} another one of the file, "
                f"{_where(each)}."
            )
    for each in report["overlaps"]:
        if each["duplicates"]:
            pair = _names([{"file": each["a"]}, {"file": each["b"]}])
            row = next(row for row in report["files"] if row["file"] == each["a"])
            yield f"{pair} have {_points(each['duplicates'])} in common, {_where(row)}."


def _where(row: Row) -> str:
    """Say what agrees in points that are the same."""
    return "at the same place" if row["gps_time"] is None else "at the same place and time"


def _apart(report: Mapping[str, Any], metres: float) -> Iterator[str]:
    unit = report["unit_of_height"] or "units"
    limit = APART / metres

    def named(strip: int | str) -> str:
        return f"strip {strip}" if isinstance(strip, int) else _names([{"file": strip}])

    shifted = [each for each in report["strips"] if abs(each["offset"] or 0.0) > limit]
    for each in shifted:
        way = "above" if each["offset"] > 0 else "below"
        yield (
            f"{named(each['strip']).capitalize()} lies {abs(each['offset']):.3f} {unit} {way} the "
            "strips that it overlaps with."
        )
    known = {each["strip"] for each in shifted}
    for each in report["strip_pairs"]:
        is_apart = abs(each["median"]) > limit or each["rms"] > RMS_APART / metres
        if is_apart and not known & {each["a"], each["b"]}:
            yield (
                f"{named(each['a']).capitalize()} and {named(each['b'])} differ in height by "
                f"{abs(each['median']):.3f} {unit} (median; root mean square {each['rms']:.3f}, "
                f"{each['cells']:,} cells)."
            )
    if report["strips_are"] == "files" and len(report["files"]) > 1 and report["density"]:
        yield "No point has a point_source_id, so that strips are told apart by file only."


def _holes(report: Mapping[str, Any]) -> Iterator[str]:
    holes = (report["density"] or {}).get("holes")
    if not holes:
        return
    square = "m²" if report["unit"] else "square units"
    first = holes[0]
    place = f"{first['area']:,.0f} {square} at {first['x']:.0f}, {first['y']:.0f}"
    count = report["density"]["hole_count"]
    if count == 1:
        yield f"The area has a hole without points, {place} (water gives few returns)."
    else:
        yield (
            f"The area has {count:,} holes without points, the largest {place} (water gives "
            "few returns)."
        )


def _formats(files: Sequence[Row]) -> Iterator[str]:
    """Say in what files differ that belong together."""
    for name, title in (("format", "format"), ("scale", "scale"), ("time", "kind of GPS time")):
        groups: dict[str, list[Row]] = {}
        for each in files:
            if each[name] is not None:
                groups.setdefault(_said(each[name]), []).append(each)
        if len(groups) > 1:
            ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
            said = "; ".join(f"{value}: {_names(rows)}" for value, rows in ranked)
            yield f"Files differ in {title}: {said}."


def _said(value: str | Sequence[float]) -> str:
    return value if isinstance(value, str) else " ".join(f"{each:.9g}" for each in value)


def _attributes(report: Mapping[str, Any]) -> Iterator[str]:
    files: list[Row] = report["files"]

    def of_files(wanted: "Any", said: str) -> Iterator[str]:
        if rows := [each for each in files if each["points"] and wanted(each)]:
            yield f"{_names(rows)}: {said}."

    yield from of_files(
        lambda each: each["intensity"] == [0, 0], "the intensity of all points is 0"
    )
    yield from of_files(lambda each: each["gps_time"] == [0, 0], "the GPS time of all points is 0")
    colours = [[each[name] for name in COLOURS] for each in files]
    for said, most in (("all colours are black", (0, 0)),
                       ("colours go to 255, where LAS has 65535", (1, EIGHT_BIT))):  # fmt: skip
        rows = [
            each for each, found in zip(files, colours, strict=True)
            if None not in found and most[0] <= max(high for _, high in found) <= most[1]
        ]  # fmt: skip
        if rows:
            yield f"{_names(rows)}: {said}."
    for each in files:
        if each["wrong_returns"]:
            yield (
                f"{_names([each])}: {_points(each['wrong_returns'])} with a return number of 0 or "
                "above the number of returns."
            )
    classes = {each["class"]: each["points"] for each in report["classes"]}
    total = sum(classes.values())
    if classes and not set(classes) - set(NO_CLASS):
        yield "No point is classified."
    if reserved := [str(each) for each in classes if each in RESERVED]:
        yield f"Classes without a meaning in the ASPRS' list: {', '.join(reserved)}."
    noise = sum(classes.get(each, 0) for each in NOISE)
    if noise > MUCH_NOISE * total:
        yield f"{100 * noise / total:.1f} % of the points are classified as noise."
    if withheld := sum(each["withheld"] for each in files):
        yield f"{_points(withheld)} {'is' if withheld == 1 else 'are'} withheld."
