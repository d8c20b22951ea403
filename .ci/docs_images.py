"""The pictures of the recipes, made anew in docs/images from the files of the demo."""

import re
import tempfile
from pathlib import Path

import duckdb
from PIL import Image, ImageFilter

import spatialq
from spatialq.demo import write_world

IMAGES = Path(__file__).parents[1] / "docs" / "images"
CLASHES = """
    SELECT a.name AS a, b.name AS b, c.penetration, c.x, c.y
    FROM intersects_with('elements') AS c
    JOIN elements AS a ON a.global_id = c.a
    JOIN elements AS b ON b.global_id = c.b
    WHERE a.storey = 'ground floor'
    ORDER BY penetration DESC
"""
DEVIATIONS = """
    WITH walls AS (FROM elements WHERE ifc_class = 'IfcWall'),
    scan AS (FROM read_las('house.laz'))
    SELECT name, deviation, boundary::VARCHAR AS boundary
    FROM plane_elements('scan', 'walls', unit := 1) AS p
    JOIN walls USING (global_id)
    WHERE "rank" = 1 AND storey = 'ground floor'
    ORDER BY name, deviation
"""
OUTLINES = """
    SELECT name, ifc_class, footprint::VARCHAR AS outline
    FROM element_footprints('elements')
    WHERE storey = 'ground floor' AND ifc_class IN ($classes)
    ORDER BY ifc_class = 'IfcWall' DESC
"""
PLAN = 760
"""Pixels from side to side."""
SCALE, LEFT, TOP = 46, 24, 396
"""Pixels of a metre, and where the corner of the house is in a plan."""


def main() -> None:
    """Write all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        world = write_world(folder)
        ground, planes, levels = (Path(folder, f"{name}.png") for name in ("g", "p", "l"))
        spatialq.write_ground(world.las, [ground], resolution=1.0)
        spatialq.write_planes(world.scan, [planes], unit=1)
        spatialq.write_lod(world.las, [levels])
        shrink(ground, "terrain.png", (20, 104, 794, 882), width=460)
        shrink(ground, "ground.png", (808, 104, 1582, 882), width=460)
        shrink(planes, "planes.png", (0, 70, 1200, 704), width=680)
        shrink(levels, "levels.png", (20, 542, 1868, 1150), width=760)
        with spatialq.connect() as con:
            spatialq.load(con, world.ifc)
            write_plan(
                "clashes.svg",
                con,
                "'IfcWall', 'IfcBeam', 'IfcDuctSegment', 'IfcPipeSegment'",
                clash_marks(con.execute(CLASHES).fetchall()),
            )
            text = DEVIATIONS.replace("house.laz", str(world.scan))
            write_plan(
                "deviations.svg", con, "'IfcWall'", deviation_marks(con.execute(text).fetchall())
            )


def shrink(path: Path, name: str, box: tuple[int, int, int, int], *, width: int) -> None:
    """Write a part of a picture with so many pixels and few colours, in less than 60 kB."""
    with Image.open(path) as picture:
        part = picture.convert("RGB").crop(box)
    part.thumbnail((width, width), Image.Resampling.LANCZOS)
    if width < 500:  # single points are noise at that size
        part = part.filter(ImageFilter.MedianFilter(3))
    part.quantize(24, kmeans=8, dither=Image.Dither.NONE).save(IMAGES / name, optimize=True)


def write_plan(name: str, con: duckdb.DuckDBPyConnection, classes: str, marks: str) -> None:
    """Write the plan of the ground floor with marks on it."""
    outlines = "".join(
        f'<path d="{path(outline)}" class="{"wall" if kind == "IfcWall" else "part"}"/>'
        for _, kind, outline in con.execute(OUTLINES.replace("$classes", classes)).fetchall()
    )
    (IMAGES / name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PLAN} 420" width="{PLAN}" '
        'font-family="sans-serif" font-size="13"><style>.wall{fill:#c9cdd3}.part{fill:#7f93ad}'
        ".bad{fill:none;stroke:#c4164f;stroke-width:3}.good{stroke:#2f8f5b;stroke-width:3}"
        f'</style><rect width="100%" height="100%" fill="#fcfcfa"/>{outlines}{marks}</svg>\n'
    )


def path(outline: str) -> str:
    """Turn the rings of a polygon of WKT into a path of SVG."""
    rings = re.findall(r"\(([^()]+)\)", outline)
    return "".join(
        "M" + "L".join(place(*map(float, point.split()[:2])) for point in ring.split(",")) + "Z"
        for ring in rings
    )


def place(x: float, y: float) -> str:
    """Where a point of the model is in a plan."""
    return f"{LEFT + SCALE * x:.1f} {TOP - SCALE * y:.1f}"


def legend(lines: list[str]) -> str:
    """Write lines beside the plan."""
    return "".join(
        f'<text x="{LEFT + SCALE * 10 + 24}" y="{48 + 26 * k}">{line}</text>'
        for k, line in enumerate(lines)
    )


def clash_marks(rows: list[tuple[str, str, float, float, float]]) -> str:
    """Draw a circle with a number around each clash."""
    circles, lines = "", []
    for number, (a, b, penetration, x, y) in enumerate(rows, 1):
        left, top = map(float, place(x, y).split())
        circles += f'<circle cx="{left}" cy="{top}" r="11" class="bad"/>'
        circles += f'<text x="{left + 13}" y="{top - 8}">{number}</text>'
        lines += [f"{number}:\u2002{1000 * penetration:.0f} mm", f"{a}, {b}"]
    return circles + legend(lines)


def deviation_marks(rows: list[tuple[str, float, str]]) -> str:
    """Draw the plane of each face of a wall, in red where it was built more than 20 mm off."""
    drawn, lines = "", []
    for name, deviation, boundary in rows:
        corners = re.findall(r"([-\d.e]+) ([-\d.e]+) ", boundary)
        x, y = ([float(corner[axis]) for corner in corners] for axis in (0, 1))
        is_off = abs(deviation) > 0.02
        line = f"M{place(min(x), min(y))}L{place(max(x), max(y))}"
        drawn += f'<path d="{line}" class="{"bad" if is_off else "good"}"/>'
        if is_off:
            lines.append(f"{name}: {1000 * deviation:+.0f} mm")
    return drawn + legend(lines)


if __name__ == "__main__":
    main()
