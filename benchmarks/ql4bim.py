"""What a script costs: compiling it, and its rows against the SQL that it is.

    python benchmarks/ql4bim.py [MODEL.ifc]

A script of 200 lines is compiled and its SQL written after a first one, which makes the parser; and
every golden pair of `tests/ql4bim` that reads a model runs as a script and as SQL written by hand,
in turns on one connection: the best of five, as a ratio.
"""

import argparse
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import in_turns

import spatialq
from spatialq.demo import write_house
from spatialq.ql4bim.program import compile_script

GOLDEN = Path(__file__).parents[1] / "tests/ql4bim/golden"
CHOSEN = (
    "type_filter", "attribute_filter", "property_filter", "deassociater_short", "projector",
    "maximum", "attribute_of_a_column", "count_of_rows", "touches", "intersects", "above_relaxed",
    "closer_than", "spatial_result_as_a_set", "function",
)  # fmt: skip


def long_script(lines: int) -> str:
    """Write a script in which each statement uses earlier ones."""
    text = ['m = ImportModel("house.ifc")']
    for k in range(lines // 5):
        text += [
            f"w{k} = TypeFilter(m is IfcWall)",
            f's{k} = AttributeFilter(w{k}, w{k}.Name ~ "a{k}" and not w{k}.Pset_X.Y = true)',
            f"t{k}[a|b] = Touches(w{k}, s{k}, tol = {k + 1}mm)",
            f"p{k} = Projector(t{k}, [a])",
            f"u{k} = Union(p{k}, {'s0' if k == 0 else f'u{k - 1}'})",
        ]
    return "\n".join(text[:lines])


def compile_times(sizes, repeat) -> None:
    start = time.perf_counter()
    compile_script('m = ImportModel("house.ifc")')
    print(f"the first script, with the parser: {1000 * (time.perf_counter() - start):.1f} ms")
    for lines in sizes:
        script = long_script(lines)
        compile_script(script)
        times = []
        for _ in range(repeat + 2):
            start = time.perf_counter()
            program = compile_script(script)
            compiled = time.perf_counter()
            program.sql()
            times.append((compiled - start, time.perf_counter() - compiled))
        best = [1000 * min(each) for each in zip(*times, strict=True)]
        print(
            f"{lines} lines: compiled in {best[0]:.1f} ms, the last variable's SQL {best[1]:.1f} ms"
        )


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--lines", nargs="+", type=int, default=[200, 2000], help="of scripts")
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    chosen = given.model
    compile_times(given.lines, given.repeat)
    with TemporaryDirectory() as folder:
        model = chosen or Path(folder, "house.ifc")
        if chosen is None:
            write_house(model)
        con = spatialq.connect()
        ratios = []
        for name in CHOSEN:
            script, by_hand = (
                (GOLDEN / f"{name}{suffix}")
                .read_text(encoding="utf-8")
                .replace("house.ifc", str(model))
                for suffix in (".ql4bim", ".sql")
            )
            works = {
                "script": lambda s=script: spatialq.run_script(con, s).result.fetchall(),
                "sql": lambda s=by_hand: con.sql(s).fetchall(),
            }
            timed = in_turns(works, given.repeat)
            ratio = timed["script"].best / timed["sql"].best
            ratios.append(ratio)
            milliseconds = (1000 * timed[each].best for each in works)
            print(f"{name:25s}", *(f"{each:9.1f} ms" for each in milliseconds), f"{ratio:6.2f}")
        print(f"median of the ratios: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
