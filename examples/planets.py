"""Find out which features, at which scales, tell one kind of terrain from another.

The study of Liang et al. (2022), section 6.1, on grids of yours: features of patches by PCA and
STAT at small, medium and large scales, aggregated per example, and classifiers that are judged by
Cohen's kappa on grids that they have not seen.

    python examples/planets.py --grid "earth=gedi/*.tif" --grid "mars=mola/*.tif"

Without grids it makes two kinds of terrain itself, eroded by rivers and hit by meteorites. That
shows how the study is done and that it runs. It says nothing about planets: the two differ as they
were made to differ. README.md says where to get grids of planets.
"""

import argparse
import glob
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
from scipy.stats import rankdata, wilcoxon
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from terrain import make_grids

import spatialq
from spatialq.cli.errors import plain
from spatialq.export.raster import Raster, hillshade
from spatialq.functions.sql_text import literal
from spatialq.io.grid.source import GridSource

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

Grids = dict[str, list[str]]
"""Files of each class."""

SCALES = {
    "small": [300.0, 400.0, 500.0],
    "medium": [700.0, 800.0, 900.0],
    "large": [1100.0, 1200.0, 1300.0],
}
# 'stat' has heights above the datum, by which anyone tells Earth from Mars. Its centred form, which
# is what the authors' code computes, has the shape alone.
METHODS = ("pca", "stat_centred")
STATISTICS = "mean, variance, skewness, kurtosis, min, q1, median, q3, max"
MIN_EXAMPLES = 20
"""Examples of a class that a classifier may learn from."""
CLASSIFIERS = {
    "logistic regression": lambda _: make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=5000, class_weight="balanced")
    ),
    "random forest": lambda seed: RandomForestClassifier(
        60, min_samples_leaf=2, class_weight="balanced", random_state=seed
    ),
    "nearest neighbours": lambda _: make_pipeline(StandardScaler(), KNeighborsClassifier(9)),
}


def main() -> None:
    """Read the arguments, do the study, print a table and draw a picture."""
    parser = argparse.ArgumentParser(description="Tell kinds of terrain apart by their features.")
    add = parser.add_argument
    add("--grid", action="append", metavar="CLASS=PATTERN", help="files of a class, in metres")
    add("--folder", type=Path, default=Path("planets"), help="for what is written")
    add("--repeats", type=int, default=3, help="of the cross-validation")
    add("--made", type=int, default=6, help="grids of each kind to make, without --grid")
    add("--cells", type=int, default=264, help="along a side of these")
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.grid:
        grids = find_grids(arguments.grid)
    else:
        grids = make_grids(folder, arguments.made, arguments.cells)
    if len(grids) < 2:
        parser.error("--grid must be given for two classes or more")
    if any(len(files) < 2 for files in grids.values()):
        print("A class has one grid: training and test share grids, which flatters.")
    with spatialq.connect() as con:
        con.execute("SET enable_progress_bar = false")
        take_features(con, grids)
        con.sql(f"COPY features TO {literal(str(folder / 'features.parquet'))}")
        tables = {
            f"{method}, {group} scales": feature_table(con, method, scales)
            for method in METHODS
            for group, scales in SCALES.items()
        }
    for name, n in Counter(next(iter(tables.values()))[1].tolist()).items():
        if n < MIN_EXAMPLES:
            parser.exit(1, f"planets: {name} has {n} examples, must have {MIN_EXAMPLES} or more\n")
    kappas = {name: cross_validate(*table, arguments.repeats) for name, table in tables.items()}
    report(kappas)
    draw(folder / "planets.png", grids, kappas)
    print(f"{folder / 'features.parquet'} has the features, {folder / 'planets.png'} the picture")


def find_grids(patterns: list[str]) -> Grids:
    """Find the files of each class."""
    grids = defaultdict(list)
    for text in patterns:
        name, _, pattern = text.partition("=")
        files = sorted(glob.glob(pattern))  # noqa: PTH207  # a Path has no glob of any pattern
        if not files:
            message = f"planets: --grid must be CLASS=PATTERN with files that exist, got {text!r}"
            raise SystemExit(message)
        grids[name] += files
    return grids


def take_features(con: "DuckDBPyConnection", grids: Grids) -> None:
    """Make the table `features`: both methods, at all scales, in one pass over each grid."""
    scales = [scale for group in SCALES.values() for scale in group]
    begin = "CREATE TABLE features AS"
    for name, files in grids.items():
        for file in files:
            query = (
                f"SELECT {literal(name)} AS class, {literal(file)} AS grid, * FROM "
                f"pops_features({literal(file)}, scales := {scales}, methods := {list(METHODS)})"
            )
            try:
                con.execute(f"{begin} {query}")
            except duckdb.Error as error:
                message = f"planets: '{file}' cannot be taken: {plain(error)}"
                raise SystemExit(message) from None
            begin = "INSERT INTO features"
    con.sql(
        "SELECT class, count(DISTINCT grid) AS grids, count(DISTINCT (grid, example_id)) AS "
        "examples FROM features GROUP BY class ORDER BY class"
    ).show()


def feature_table(
    con: "DuckDBPyConnection", method: str, scales: list[float]
) -> "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]":
    """Give one row per example (features, class, grid), without those that lack a value."""
    rows = con.execute(
        f"""
        SELECT list(value ORDER BY scale, feature, statistic), class, grid
        FROM (FROM features WHERE method = $1 AND list_contains($2, scale))
        UNPIVOT (value FOR statistic IN ({STATISTICS}))
        GROUP BY class, grid, example_id
        ORDER BY class, grid, example_id
        """,
        [method, scales],
    ).fetchall()
    full = max(len(values) for values, *_ in rows)
    values, classes, files = zip(*(row for row in rows if len(row[0]) == full), strict=True)
    return np.array(values), np.array(classes), np.array(files)


def cross_validate(
    values: "NDArray[Any]", classes: "NDArray[Any]", files: "NDArray[Any]", repeats: int
) -> "NDArray[Any]":
    """Give Cohen's kappa of each setting: a classifier and a division into folds.

    Neighbouring examples are alike, so that a grid is in the training or in the test, never in
    both. Where a class has one grid only, examples are left out instead, which flatters.
    """
    fewest = min(len(set(files[classes == name])) for name in set(classes))
    kappas = []
    for classifier in CLASSIFIERS.values():
        for seed in range(repeats):
            if fewest > 1:
                folds = StratifiedGroupKFold(min(5, fewest), shuffle=True, random_state=seed)
            else:
                folds = StratifiedKFold(5, shuffle=True, random_state=seed)
            guessed = np.empty_like(classes)
            groups = files if fewest > 1 else None
            for train, test in folds.split(values, classes, groups):
                model = classifier(seed).fit(values[train], classes[train])
                guessed[test] = model.predict(values[test])
            kappas.append(cohen_kappa_score(classes, guessed))
    return np.array(kappas)


def report(kappas: "dict[str, NDArray[Any]]") -> None:
    """Print mean, deviation and mean rank, and Wilcoxon's signed rank test against the best."""
    ranks = rankdata([-each for each in kappas.values()], axis=0).mean(axis=1)
    order = np.argsort(ranks)
    names = list(kappas)
    best = kappas[names[order[0]]]
    print(f"{'':30}  kappa          mean rank  p against the best, of {best.size} settings")
    for k in order:
        own = kappas[names[k]]
        p = f"{wilcoxon(best, own).pvalue:.1e}" if (own != best).any() else "-"
        print(f"{names[k]:30}  {own.mean():.3f} ± {own.std():.3f}  {ranks[k]:9.1f}  {p}")
    print("Settings share their grids: p tells settings apart, it is not of other grids.")


INK, FAINT, PAPER = (38, 42, 48), (190, 194, 200), (252, 252, 250)
COLOURS = {"pca": (196, 80, 40), "stat_centred": (40, 96, 160)}


def draw(path: Path, grids: Grids, kappas: "dict[str, NDArray[Any]]") -> None:
    """Draw a hillshade of one grid per class, and the kappas: settings as dots, means as bars."""
    from PIL import Image, ImageDraw, ImageFont, ImageOps

    small, medium, large = (ImageFont.load_default(size) for size in (15, 18, 28))
    canvas = Image.new("RGB", (1200, 480 + 44 * len(kappas)), PAPER)
    pen = ImageDraw.Draw(canvas)
    pen.text((28, 24), "Kinds of terrain, and how well features tell them apart", INK, large)
    side = min(340, 1144 // len(grids) - 16)
    for k, (name, files) in enumerate(grids.items()):
        source = GridSource(files[0])
        z = source.overview(2 * side)
        west, _, _, east, *_ = source.box
        shaded = Image.fromarray(hillshade(Raster(z, 0.0, 0.0, (east - west) / z.shape[1])))
        canvas.paste(ImageOps.contain(shaded, (side, side)), (28 + k * (side + 16), 100))
        pen.text((28 + k * (side + 16), 74), f"{name}: {Path(files[0]).name}", INK, medium)
    low = min(0.0, *(each.min() for each in kappas.values()))

    def across(kappa: float) -> float:
        return 300 + 860 * (kappa - low) / (1 - low)

    top = 470
    pen.text((28, top - 10), "Cohen's kappa", INK, medium, anchor="ls")
    for mark in np.arange(np.ceil(low * 5) / 5, 1.01, 0.2):
        pen.line([(across(mark), top), (across(mark), top + 44 * len(kappas) - 20)], FAINT)
        pen.text((across(mark), top - 10), f"{mark:.1f}", INK, small, anchor="ms")
    for k, (name, values) in enumerate(kappas.items()):
        y = top + 16 + 44 * k
        colour = COLOURS[name.split(",")[0]]
        pen.text((28, y), name, INK, medium, anchor="lm")
        for i, value in enumerate(values):  # apart from each other, up and down
            x, at = across(value), y + 12 * ((i * 0.618) % 1 - 0.5)
            pen.ellipse((x - 3, at - 3, x + 3, at + 3), fill=colour)
        x = across(values.mean())
        pen.line([(x, y - 14), (x, y + 14)], INK, 3)
    canvas.save(path)


if __name__ == "__main__":
    main()
