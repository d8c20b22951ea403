"""What the page of `spatialq view` costs: the repaint by a query, the first picture, frames, bytes.

    python benchmarks/serve.py [--points 10000000] [--shown 1000000] [--elements 30000]
        [--planes 5000] [--repeat N] [--no-browser] [--out FOLDER]

A repaint is the query of the box, with the bit or byte of each point, and those of the points that
are drawn, in processor time of one process, against DuckDB that hands out the rows. In headless
Chromium (`SPATIALQ_CHROMIUM`), which draws on the processor: when the first picture is there, what
was transferred for the whole view, and how long a frame takes while the camera turns, on the clock
and of all processes of the browser. Clouds are tiled before.
"""

import argparse
import gzip
import os
import shutil
import statistics
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from measure import add_arguments, in_turns, show, write

import spatialq
from spatialq.runtime.threads import n_threads
from spatialq.serve.app import PAGE, Server
from spatialq.serve.limits import Limits
from spatialq.serve.queries import BATCH, Target, run
from spatialq.serve.scene import open_scene
from spatialq.serve.server import Listening

FRAMES = 10
DRAWN = 3_000_000
"""Points that the page draws at most."""
CHROMIUM = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
            "--ignore-gpu-blocklist"]  # fmt: skip
POINTS = """
CREATE TABLE points AS SELECT point_id, x, y, 10 * sin(x / 40) * cos(y / 30) AS z,
    (1 + hash(point_id) % 6)::UTINYINT AS classification,
    (hash(point_id) % 65536)::USMALLINT AS intensity
FROM (SELECT range AS point_id, 500000 + hash(range) % 1000003 / 1000.0 AS x,
    5600000 + hash(-range) % 1000003 / 1000.0 AS y FROM range({n}))
"""
ELEMENTS = """
CREATE TABLE elements AS SELECT lpad(range::VARCHAR, 22, '0') AS global_id,
    'element ' || range AS name, ['IfcWall', 'IfcSlab', 'IfcDoor'][1 + range % 3] AS ifc_class,
    'storey ' || range % 9 AS storey,
    {{'vertices': list_concat(
        [x, y, z, x + 2.5, y, z, x + 2.5, y + 0.3, z, x, y + 0.3, z],
        [x, y, z + 3.0, x + 2.5, y, z + 3.0, x + 2.5, y + 0.3, z + 3.0, x, y + 0.3, z + 3.0]),
      'faces': [0, 2, 1, 0, 3, 2, 4, 5, 6, 4, 6, 7, 0, 1, 5, 0, 5, 4, 1, 2, 6, 1, 6, 5,
        2, 3, 7, 2, 7, 6, 3, 0, 4, 3, 4, 7]::INTEGER[]}} AS mesh
FROM (SELECT range, 3.0::DOUBLE * (range % side) AS x, 3.0::DOUBLE * (range // side % side) AS y,
        4.0::DOUBLE * (range // (side * side)) AS z
    FROM range({n}), (SELECT ceil(sqrt({n} / 9))::BIGINT AS side))
"""
PLANES = """
CREATE TABLE planes AS SELECT range AS plane_id, 0.0 AS nx, 0.0 AS ny, 1.0 AS nz, -z AS d,
    100 AS point_count, format('POLYGON Z (({{0}} {{1}} {{4}}, {{2}} {{1}} {{4}}, '
        '{{2}} {{3}} {{4}}, {{0}} {{3}} {{4}}, {{0}} {{1}} {{4}}))',
        x, y, x + 4, y + 3, z)::GEOMETRY AS boundary
FROM (SELECT range, 5 * (range % 100) AS x, 4 * (range // 100) AS y, range % 30 AS z
    FROM range({n}))
"""
READY = """async () => {
    for (let k = 0; !window.spatialq; k++) {
        if (k > 6000) throw new Error(document.getElementById('note').textContent);
        await new Promise((done) => setTimeout(done, 20));
    }
    await window.spatialq.whenIdle();
}"""
LOADED = """() => {
    const sent = performance.getEntriesByType('resource').map((each) => each.transferSize);
    const [first] = performance.getEntriesByName('first picture');
    return [first?.startTime ?? null, sent.reduce((sum, each) => sum + each, 0)];
}"""
QUERIES = {
    "a tenth of the points": "SELECT point_id FROM points WHERE z > 7",
    "half of the points": "SELECT point_id FROM points WHERE classification < 4",
    "all points, coloured": "SELECT point_id, intensity FROM points",
}


def made(folder, name, statement, n):
    path = folder / f"{name}.duckdb"
    with spatialq.connect(str(path)) as con:
        con.execute(statement.format(n=n))
    return path


def repaint(path, n, repeat):
    """Processor seconds of a query with its marks, against those of the rows alone."""
    target = Target(0, "points", n, n - 1)
    drawn = np.random.default_rng(1).permutation(n)[:DRAWN]
    found = []
    with spatialq.connect(str(path), read_only=True) as con:
        for name, text in QUERIES.items():
            of = []

            def ours(text=text, of=of):
                of[:] = [run(con, "", text, [target], Limits()).points[0]]

            def rows_alone(text=text):
                for _ in con.sql(text).to_arrow_reader(BATCH):
                    pass

            def tiles(of=of):
                of[0].of(drawn)

            times = in_turns({"query": ours, "rows": rows_alone, "tiles": tiles}, repeat)
            seconds = {each: timed.best_processor for each, timed in times.items()}
            bits = len(of[0].of(drawn)) / len(drawn)
            found.append({
                "query": name, "points": n, "query_s": seconds["query"],
                "rows_s": seconds["rows"], "drawn_s": seconds["tiles"],
                "times_rows": seconds["query"] / seconds["rows"], "bytes_a_point": bits,
            })  # fmt: skip
    return found


def in_browser(launched, path, name):
    """What a person waits for, and what comes over the wire."""
    with open_scene([str(path)], cache=path.parent) as scene:
        began = time.process_time()
        scene.build()
        built = time.process_time() - began
        with closing(Listening(Server(scene))) as listening:
            listening.start()
            tab = launched.new_page(
                viewport={"width": 1440, "height": 900}, reduced_motion="reduce"
            )
            tab.goto(listening.address)
            tab.evaluate(READY)
            first, sent = tab.evaluate(LOADED)
            processor = processor_seconds(launched)
            frames = tab.evaluate("(frames) => window.spatialq.turn(frames)", FRAMES)
            processor = processor_seconds(launched) - processor
            drawn = tab.evaluate("() => window.spatialq.points()")
            tab.close()
    return {
        "scene": name, "tiles_processor_s": built, "first_picture_s": first and first / 1e3,
        "transferred_mb": sent / 1e6, "points_drawn": drawn, "frame_ms": statistics.median(frames),
        "frame_processor_ms": 1e3 * processor / FRAMES,
    }  # fmt: skip


def processor_seconds(launched):
    """Of all processes of the browser."""
    said = launched.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    return sum(each["cpuTime"] for each in said["processInfo"])


def browser(driver):
    found = os.environ.get("SPATIALQ_CHROMIUM") or shutil.which("chromium")
    if found is None or not (PAGE / "app.js").is_file():
        return None
    return driver.chromium.launch(executable_path=found, args=CHROMIUM)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--shown", type=int, default=1_000_000)
    parser.add_argument("--elements", type=int, default=30_000)
    parser.add_argument("--planes", type=int, default=5_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-browser", action="store_true")
    add_arguments(parser)
    given = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures["repaint"] = repaint(
            made(folder, "large", POINTS, given.points), given.points, given.repeat
        )
        (folder / "large.duckdb").unlink()
        files = [each for each in PAGE.iterdir() if each.suffix != ".txt"] if PAGE.is_dir() else []
        figures["page_gzip_kb"] = sum(len(gzip.compress(f.read_bytes(), 9)) for f in files) / 1e3
        if not given.no_browser:
            from playwright.sync_api import sync_playwright

            with sync_playwright() as driver:
                if (launched := browser(driver)) is not None:
                    figures["scenes"] = [
                        in_browser(launched, made(folder, kind, statement, n), f"{n} {kind}")
                        for kind, statement, n in (
                            ("points", POINTS, given.shown), ("elements", ELEMENTS, given.elements),
                            ("planes", PLANES, given.planes),
                        )
                    ]  # fmt: skip
                    launched.close()
    about = {"date": datetime.now(UTC).date().isoformat(), "commit": given.commit}
    write(
        given.out,
        "serve",
        show({"function": "serve", **about, "cpu_threads": n_threads(), **figures}),
    )


if __name__ == "__main__":
    main()
