"""The tables of README.md that come from files of `results/`: written anew, or compared by tests.

python benchmarks/figures.py

A table below a line `<!-- figures: NAME -->` has the rows that a function of `TABLES` makes of
`results/NAME.json`; its head is kept.
"""

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
README = FOLDER / "README.md"
TABLE = re.compile(r"(<!-- figures: (\w+) -->\n\n\|.*\n\| ---.*\n)((?:\|.*\n)*)")
TITLES = {
    "owm_ground dense": "`owm_ground`, dense",
    "owm_ground sparse": "`owm_ground`, sparse: strips",
}


def read(name: str) -> Any:
    return json.loads((FOLDER / "results" / f"{name}.json").read_text(encoding="utf-8"))


def owm_ground(found):
    for each in found["clouds"]:
        stages = each["stages_ms"]
        parts = *map(stages.get, ("rows", "columns", "fill")), stages["count"] + stages["collect"]
        cells = " / ".join(f"{each:.3f}" for each in parts)
        yield [
            f"{each['cloud']}, {each['points'] / 1e6:.1f} M", f"{each['device_ms']:.3f}",
            f"**{each['kernels_G_points_per_s']:.0f}**", f"{each['read_ms']:.3f}",
            f"{stages['bin']:.2f} / {cells}",
            f"{each['call_with_box_ms']:.2f} / {each['call_ms']:.2f}",
            f"{each['host_to_host_ms']:.1f}",
        ]  # fmt: skip


def classify_ground(found):
    for each in found["clouds"]:
        points, cells = (each[name] / 1e6 for name in ("points", "cells"))
        yield [
            f"{each['cloud']}, {points:.1f} M points, {cells:.1f} M cells",
            f"{each['device_ms']:.1f} ms", f"**{each['M_points_per_s']:.0f}**",
            f"{each['host_to_host_ms']:.0f} ms", f"{each['cpu_ms']:.0f} ms",
        ]  # fmt: skip


def gpu_tiles(found):
    for call in found["calls"]:
        name = call["function"]
        title = TITLES.get(f"{name} {call['cloud']}", f"`{name}`")
        yield [
            title,
            *(
                f"{each['ms']:.0f}, {each['bytes'] / 1e6:.0f}, {each['counted_bytes'] / 1e6:.0f}"
                for each in call["tiles"]
            ),
        ]


def detect_planes(found):
    for each, of_points in zip(found["clouds"], read("plane_points")["clouds"], strict=True):
        order = each["cloud"].removeprefix("room, ")
        yield [
            f"{each['points']:,}, {order}", f"{each['device_ms']:.0f} ms",
            f"{sum(each['kernels_ms'].values()):.1f} ms", f"{each['cpu_ms']:.0f} ms",
            f"{each['cpu_ms'] / each['device_ms']:.0f}", f"{of_points['device_ms']:.0f} ms",
        ]  # fmt: skip


def first_calls(found):
    for name, each in found["functions"].items():
        shipped, none, turns = each["shipped"], each["none"], each["in turns"]
        yield [
            f"`{name}`", f"{none['first']:.1f}, {none['processor']:.1f}", f"{none['compiled']}",
            f"{shipped['first']:.2f}, {shipped['processor']:.2f}", f"{shipped['compiled']}",
            f"{1e3 * turns['none']:.0f}", f"{1e3 * turns['shipped']:.0f}", f"{turns['ratio']:.2f}",
        ]  # fmt: skip


def large_clouds(found):
    few, many = (
        {
            name: min(
                (r for r in found["runs"] if r.get("command") == name and r["points"] == n),
                key=lambda run: run["seconds"],
            )
            for name in ("planes", "lod", "ground")
        }
        for n in sorted(map(int, found["tiles"]))
    )
    for name, large in many.items():
        small = few[name]
        size = large["points"] / small["points"]
        growth = [processors(large) / processors(small), large["seconds"] / small["seconds"]]
        yield [
            f"`{name}`", f"{processors(small):.1f}, {small['seconds']:.1f}",
            f"{processors(large):.1f}, {large['seconds']:.1f}",
            ", ".join(f"{each / size:.2f}" for each in growth),
            f"{large['peak_bytes'] / 1e9:.2f} GB", f"{large['points_per_second'] / 1e6:.2f} M",
        ]  # fmt: skip


def processors(run):
    return run["user_seconds"] + run["system_seconds"]


def export_ifc(found):
    for each in found["parts"]:
        own, other = each["spatialq"], each["ifcpatch"]
        yield [
            Path(each["model"]).stem, str(each["elements"]), f"{own['seconds']:.2f} s",
            f"{own['ms_an_element']:.1f}", f"{own['relationships']:,}",
            f"{other['seconds']:.1f} s", f"{other['ms_an_element']:.0f}",
            f"{other['relationships']:,}", f"{each['ratio']:.1f}",
        ]  # fmt: skip


def plane_roofs(found):
    rows = found["densities"]
    for density in dict.fromkeys(each["points per m2"] for each in rows):
        each = {row["parameters"]: row for row in rows if row["points per m2"] == density}
        yield [
            f"{density:g}", f"{each['defaults']['faces']}",
            *(
                f"{row['found']} ({row['found'] / row['faces']:.0%}), {row['planes of no face']}, "
                f"{row['greatest rmse']:.2f}"
                for row in map(each.get, found["parameters"])
            ),
        ]  # fmt: skip


def small_calls(found):
    before = read("small_calls_before")["functions"]
    for name, now in found["functions"].items():
        then = before[name]
        yield [
            f"`{name}`", f"{now['processor_ms']['kernel']:.1f}",
            *(
                f"{then['beyond'][way]:.1f} / {now['beyond'][way]:.1f}"
                for way in ("run", "execute", "sql")
            ),
            f"{then['groups']:.2f} / {now['groups']:.2f}", f"{now['group_kernels']:.2f}",
        ]  # fmt: skip


TABLES = {
    each.__name__: each
    for each in (
        classify_ground, detect_planes, export_ifc, first_calls, gpu_tiles, large_clouds,
        owm_ground, plane_roofs, small_calls,
    )
}  # fmt: skip


def with_figures(text: str) -> str:
    """Give the text with the rows of its tables made of the files."""

    def table(match: re.Match[str]) -> str:
        head, name, _ = match.groups()
        rows = TABLES[name](read(name))
        return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)

    return TABLE.sub(table, text)


def main() -> None:
    README.write_text(with_figures(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
