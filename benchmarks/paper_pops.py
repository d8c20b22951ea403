"""POPS: times by example and grid size, as figures 7 and 8; critical differences, as figure 5.

The grid is generated, of cells of 60 m; examples have sides from 2 km upwards, grids from a tenth
of the largest side. Times are processor milliseconds of each method at the small, medium and large
scales, the best of so many rounds in turns.

The study is that of examples/planets.py on the terrains that it makes: Cohen's kappa of three
classifiers in several divisions, by method and scales. Settings are ranked in each of these, and
two differ if their mean ranks do by more than the critical difference of Nemenyi's test (Demsar
2006, section 3.2.2) at 5 %: q sqrt(k (k + 1) / 6 N), with q the quantile of the studentized range
by sqrt 2. It says what tells these terrains apart, and nothing about planets.
"""

import sys
import tempfile
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from measure import in_turns
from pops_features import METHODS, OURS, SCALES, SPACING, terrain
from scipy.stats import friedmanchisquare, rankdata, studentized_range
from spatialq.udfs.pops_features import Options

import spatialq

sys.path.append(str(Path(__file__).parents[1] / "examples"))
import planets  # type: ignore[import-not-found]  # of the folder of examples

SMALL, FULL = 1000, 3000
EXAMPLES = (2000.0, 4000.0, 8000.0, 16000.0)
SHARES = (0.1, 0.25, 0.5, 1.0)
GROUPS = ("small", "medium", "large")
LEVEL = 0.05


def add_arguments(parser):
    parser.add_argument("--side", type=int, help="cells along the side of the largest grid")
    parser.add_argument("--grids", type=int, default=6, help="of each terrain of the study")
    parser.add_argument("--cells", type=int, default=264, help="along the side of these")
    parser.add_argument("--picture", type=Path, help="SVG with the critical difference diagram")


def figures(chosen):
    """Sweep the sizes, then do the study."""
    side = chosen.side or (SMALL if chosen.small else FULL)
    whole = terrain(side, side)
    sizes = [("example", whole, size) for size in EXAMPLES if size <= side * SPACING]
    sizes += [
        ("grid", terrain(cells, cells), EXAMPLES[0])
        for cells in (int(share * side) for share in SHARES)
        if cells * SPACING >= EXAMPLES[0]
    ]
    rows = []
    for swept, grid, example in sizes:
        row = {
            "swept": swept, "side": grid.z.shape[0], "example_metres": example,
            "processor_ms": times(grid, example, chosen.repeat),
        }  # fmt: skip
        print(*(f"{key}={value}" for key, value in row.items()), flush=True)
        rows.append(row)
    study = differences(kappas(chosen.grids, chosen.cells))
    print(study, flush=True)
    if chosen.picture:
        chosen.picture.write_text(picture(study), encoding="utf-8")
    return {"rows": rows, "study": study}


def times(grid, example, repeat):
    """Processor milliseconds by method and scales."""
    works = {
        f"{method} {group}": partial(
            OURS,
            grid,
            Options(scales=SCALES[group], methods=METHODS[method], example_scale=example),
        )
        for method, group in product(("PCA", "STAT"), GROUPS)
    }
    timed = in_turns(works, repeat)
    return {name: round(1e3 * each.best_processor, 1) for name, each in timed.items()}


def kappas(grids, cells, repeats=3):
    """Cohen's kappa by method and scales, of each classifier and division."""
    with tempfile.TemporaryDirectory() as folder, spatialq.connect() as con:
        planets.take_features(con, planets.make_grids(Path(folder), grids, cells))
        return {
            f"{method}, {group}": planets.cross_validate(
                *planets.feature_table(con, method, scales), repeats
            )
            for method in planets.METHODS
            for group, scales in planets.SCALES.items()
        }


def differences(found):
    """Mean ranks of settings, from the best on, and the critical difference."""
    values = np.array(list(found.values()))
    n_settings, n_ranked = values.shape
    ranks = rankdata(-values, axis=0).mean(axis=1)
    quantile = studentized_range.ppf(1 - LEVEL, n_settings, np.inf) / np.sqrt(2)
    order = np.argsort(ranks, kind="stable")
    names = list(found)
    return {
        "ranked": n_ranked,
        "friedman_p": float(friedmanchisquare(*values).pvalue),
        "critical_difference": round(
            float(quantile * np.sqrt(n_settings * (n_settings + 1) / (6 * n_ranked))), 3
        ),
        "settings": [
            {"setting": names[k], "mean_rank": round(float(ranks[k]), 3),
             "kappa": round(float(values[k].mean()), 3)}
            for k in order
        ],
    }  # fmt: skip


def alike(study):
    """The longest runs of settings whose mean ranks differ by no more than the critical one."""
    ranks = [each["mean_rank"] for each in study["settings"]]
    runs = []
    for first in range(len(ranks)):
        last = max(
            k for k in range(len(ranks)) if ranks[k] - ranks[first] <= study["critical_difference"]
        )
        if last > first and not (runs and runs[-1][1] >= last):
            runs.append((first, last))
    return runs


WIDTH, LEFT, LINE = 720, 210, 24


def picture(study):
    """Draw the diagram: an axis of mean ranks, settings at theirs, bars over what is alike."""
    settings = study["settings"]
    top, n = 60, len(settings)

    def across(rank):
        return LEFT + (WIDTH - 2 * LEFT) * (rank - 1) / (n - 1)

    marks = [f'<line x1="{across(1)}" y1="{top}" x2="{across(n)}" y2="{top}" stroke="#555"/>']
    marks += [
        f'<line x1="{across(k):.1f}" y1="{top - 5}" x2="{across(k):.1f}" y2="{top}" stroke="#555"/>'
        f'<text x="{across(k):.1f}" y="{top - 9}" text-anchor="middle">{k}</text>'
        for k in range(1, n + 1)
    ]
    far = across(1 + study["critical_difference"])
    marks.append(
        f'<line x1="{LEFT}" y1="22" x2="{far:.1f}" y2="22" stroke="#c62828" stroke-width="2"/>'
        f'<text x="{LEFT}" y="16">critical difference {study["critical_difference"]:.2f}</text>'
    )
    runs = alike(study)
    for k, (first, last) in enumerate(runs):
        ends = [across(settings[at]["mean_rank"]) for at in (first, last)]
        y = top + 10 + 8 * k
        marks.append(
            f'<line x1="{ends[0] - 3:.1f}" y1="{y}" x2="{ends[1] + 3:.1f}" y2="{y}" '
            'stroke="#00796b" stroke-width="4"/>'
        )
    below = top + 10 + 8 * len(runs)
    for k, each in enumerate(settings):
        x, is_left = across(each["mean_rank"]), k < (n + 1) // 2
        y = below + LINE * (1 + (k if is_left else n - 1 - k))
        end, anchor = (LEFT - 10, "end") if is_left else (WIDTH - LEFT + 10, "start")
        marks.append(
            f'<polyline points="{x:.1f},{top} {x:.1f},{y} {end},{y}" fill="none" stroke="#888"/>'
            f'<text x="{end + (-4 if is_left else 4)}" y="{y + 4}" text-anchor="{anchor}">'
            f"{each['setting']} ({each['mean_rank']:.2f})</text>"
        )
    height = below + LINE * ((n + 1) // 2 + 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" fill="#555">\n' + "\n".join(marks) + "\n</svg>\n"
    )
