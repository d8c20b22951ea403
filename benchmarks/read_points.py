"""How fast clouds in other formats are read, against other readers of the same files, in one run.

Rates are million points a second, by the best of the rounds; ratios are to the other reader, whose
time is taken anew in each round. `--processor` counts the time of all threads of the process, which
a busy machine changes less. A table is one in a new database in a file. Memory is the peak of a
fresh process that reads all columns, above that of one that has only imported. Text is read twice,
as it is opened anew in each round.
Run it as ``python benchmarks/read_points.py --points 4000000``; E57 needs pye57, the ratio of PLY
trimesh.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from measure import in_turns
from read_las import peak_memory

import spatialq
from spatialq.io.formats import find_reader

SEED = 1
AXES = ["x", "y", "z"]


def cloud(n: int) -> dict[str, np.ndarray]:
    """Make the path of a scanner through a village, and colours."""
    random = np.random.default_rng(SEED)
    x, y, z = (np.cumsum(random.normal(0, 0.01, n)).round(3).astype("f4") for _ in AXES)
    colours = {each: random.integers(0, 256, n).astype("u1") for each in ("red", "green", "blue")}
    return {
        "x": x,
        "y": y,
        "z": z,
        "intensity": random.integers(0, 4096, n).astype("u2"),
        **colours,
    }


def records(columns: dict[str, np.ndarray], order: Literal["<", ">"] = "<") -> bytes:
    """Give the columns as records without gaps."""
    types = [(name, values.dtype.newbyteorder(order)) for name, values in columns.items()]
    found = np.empty(len(columns["x"]), types)
    for name, values in columns.items():
        found[name] = values
    return found.tobytes()


def write_ply(path: Path, columns: dict[str, np.ndarray], order: Literal["<", ">"]) -> None:
    names = {"f4": "float", "u2": "ushort", "u1": "uchar"}
    kind = {"<": "binary_little_endian", ">": "binary_big_endian"}[order]
    header = f"ply\nformat {kind} 1.0\nelement vertex {len(columns['x'])}\n"
    for name, values in columns.items():
        header += f"property {names[values.dtype.str[1:]]} {name}\n"
    path.write_bytes(f"{header}end_header\n".encode() + records(columns, order))


def write_pcd(path: Path, columns: dict[str, np.ndarray]) -> None:
    types = [values.dtype for values in columns.values()]
    n = len(columns["x"])
    header = {
        "VERSION": "0.7",
        "FIELDS": " ".join(columns),
        "SIZE": " ".join(str(each.itemsize) for each in types),
        "TYPE": " ".join(each.kind.upper() for each in types),
        "COUNT": " ".join("1" for _ in types),
        "WIDTH": n,
        "HEIGHT": 1,
        "VIEWPOINT": "0 0 0 1 0 0 0",
        "POINTS": n,
        "DATA": "binary",
    }
    text = "".join(f"{key} {value}\n" for key, value in header.items())
    path.write_bytes(text.encode() + records(columns))


def write_e57(path: Path, columns: dict[str, np.ndarray]) -> None:
    import pye57

    data = {f"cartesian{axis.upper()}": columns[axis] for axis in AXES}
    data |= {f"color{each.title()}": columns[each] for each in ("red", "green", "blue")}
    data["intensity"] = columns["intensity"].astype("f4")
    turn = np.array([0.5, 0.5, 0.5, 0.5])
    with pye57.E57(str(path), "w") as file:
        file.write_scan_raw(data, rotation=turn, translation=np.array([1.0, 2.0, 3.0]))


def write_text(path: Path, columns: dict[str, np.ndarray], separator: str) -> None:
    import pyarrow as pa
    from pyarrow import csv

    table = pa.table({name: values.astype("f8") if name in AXES else values
                      for name, values in columns.items()})  # fmt: skip
    options = csv.WriteOptions(include_header=separator == ",", delimiter=separator)
    csv.write_csv(table, path, options)


def read(path: Path, columns: list[str] | None = None) -> int:
    """Open a file and read it; give the number of points."""
    source = find_reader(path).open(path)
    return sum(batch.num_rows for batch in source.batches(columns or source.schema.names))


def load(path: Path, folder: Path) -> None:
    database = folder / "points.duckdb"
    database.unlink(missing_ok=True)
    with spatialq.connect(str(database)) as con:
        spatialq.read_points(con, path, name="cloud")
        con.execute("CREATE TABLE points AS FROM cloud")


def by_pye57(path: Path) -> None:
    import pye57

    with pye57.E57(str(path)) as file:
        file.read_scan(0, intensity=True, colors=True, ignore_missing_fields=True)


def by_trimesh(path: Path) -> None:
    import trimesh

    with path.open("rb") as file:
        trimesh.exchange.ply.load_ply(file, fix_texture=False, skip_materials=True)


def by_duckdb(path: Path, separator: str) -> None:
    import duckdb

    types = dict.fromkeys(AXES, "DOUBLE") | dict.fromkeys(
        ("intensity", "red", "green", "blue"), "USMALLINT"
    )
    with duckdb.connect() as con:
        reader = con.read_csv(
            str(path),
            columns=types,
            header=separator == ",",
            delimiter=separator,
            auto_detect=False,
        ).to_arrow_reader(122_880)
        for _ in reader:
            pass


def files(folder: Path, n: int) -> dict[str, tuple[Path, Callable[[Path], None] | None]]:
    """Write the files; give each with another reader of it."""
    columns = cloud(n)
    write_ply(folder / "little.ply", columns, "<")
    write_ply(folder / "big.ply", columns, ">")
    write_pcd(folder / "cloud.pcd", columns)
    write_text(folder / "cloud.xyz", columns, " ")
    write_text(folder / "cloud.csv", columns, ",")
    write_text(folder / "three.xyz", {axis: columns[axis] for axis in AXES}, " ")
    write_e57(folder / "cloud.e57", columns)
    return {
        "E57 (pye57 read_scan)": (folder / "cloud.e57", by_pye57),
        "PLY, little endian (trimesh)": (folder / "little.ply", by_trimesh),
        "PLY, big endian (trimesh)": (folder / "big.ply", by_trimesh),
        "PCD, binary": (folder / "cloud.pcd", None),
        "text, 7 columns (DuckDB, types given)": (
            folder / "cloud.xyz",
            lambda path: by_duckdb(path, " "),
        ),
        "CSV, 7 columns (DuckDB, types given)": (
            folder / "cloud.csv",
            lambda path: by_duckdb(path, ","),
        ),
        "text, x y z": (folder / "three.xyz", None),
    }


def memory_of(path: Path | None) -> float:
    command = [sys.executable, __file__, "--read", str(path or "")]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processor", action="store_true", help="processor time, not wall time")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read is not None:
        if options.read:
            read(Path(options.read))
        print(peak_memory())
        return
    n = options.points
    clock = time.process_time if options.processor else time.perf_counter
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        idle = memory_of(None)
        print("| format (other reader) | all columns | x, y, z | into a table | ratio | MB |")
        print("| --- | --- | --- | --- | --- | --- |")
        for label, (path, other) in files(folder, n).items():
            works = {
                "all": lambda path=path: read(path),
                "xyz": lambda path=path: read(path, AXES),
                "load": lambda path=path: load(path, folder),
            }
            if other is not None:
                works["other"] = lambda path=path, other=other: other(path)
            times = in_turns(works, options.rounds)
            best = {each: min(timed.seconds(clock)) for each, timed in times.items()}
            rates = [f"{n / best[each] / 1e6:.1f}" for each in ("all", "xyz", "load")]
            ratio = f"{best['other'] / best['all']:.1f}" if other else ""
            print(
                f"| {label} | {' | '.join(rates)} | {ratio} | {memory_of(path) - idle:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
