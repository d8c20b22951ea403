"""Rows of clashes and the elements that they name: what BCF, pages and models of clashes share."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.database.partial_models import PAIR, files_of
from spatialq.database.sources import tables_read
from spatialq.errors import files_read_by
from spatialq.export.atomic import WRITER
from spatialq.export.clash_snapshot import Snapshot, snapshot
from spatialq.export.clash_view import COLOURS, radius_of
from spatialq.runtime.arrays import Floats
from spatialq.runtime.threads import workers
from spatialq.workflows.clash_models import short_names
from spatialq.workflows.clash_rows import understood
from spatialq.workflows.tables import dicts
from spatialq.workflows.tiles_elements import NOT_DRAWN, meshes_of_table

if TYPE_CHECKING:
    import pyarrow as pa

    from spatialq.database.writers import Result


Clash = Mapping[str, Any]
"""A row: the GlobalIds a and b, and what else its query gives."""
BATCH = 64
"""Pictures that are drawn before they are written."""
MOST_OTHERS = 40
"""Elements around a clash that are shown with it."""
BOX = ("xmin", "ymin", "zmin", "xmax", "ymax", "zmax")
SAID = ("name", "ifc_class", "storey", "file_name")
PALETTE = (
    (214, 39, 40), (31, 119, 180), (44, 160, 44), (255, 127, 14), (148, 103, 189), (140, 86, 75),
    (227, 119, 194), (188, 189, 34), (23, 190, 207),
)  # fmt: skip
"""Of groups, again and again."""


@dataclass(frozen=True)
class Painted:
    """What a clashing element is for its clashes, such as 'a' or 'group 2', and its colour."""

    label: str
    colour: tuple[int, int, int]


@dataclass(frozen=True)
class Building:
    """The elements of some models.

    Parameters
    ----------
    table : pyarrow.Table
        Of `read_ifc`.
    meshes : Meshes
    low, high : float64[n, 3]
        Corners of their boxes.
    is_drawn : bool[n]
        False of spaces and openings, which hide what is in them.
    places : mapping of str to list of int
        The rows of each GlobalId.
    names : mapping of str to str
        Of each file what it is called.
    """

    table: "pa.Table"
    meshes: Meshes
    low: Floats
    high: Floats
    is_drawn: "np.ndarray[Any, np.dtype[np.bool_]]"
    places: Mapping[str, list[int]]
    names: Mapping[str, str]

    @classmethod
    def of(cls, files: Sequence[Path]) -> "Building":
        """Read models."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from spatialq.io.ifc.cache import read_models

        models = read_models(files, geometry="auto")
        table = pa.concat_tables([model.tables["elements"] for model in models])
        box = np.stack([table[name].to_numpy() for name in BOX], axis=1).reshape(-1, 6)
        is_drawn = pc.invert(pc.is_in(table["ifc_class"], pa.array(NOT_DRAWN))).to_numpy()
        places: dict[str, list[int]] = {}
        for row, each in enumerate(table["global_id"].to_pylist()):
            places.setdefault(each, []).append(row)
        names = short_names(table["file_name"].unique().to_pylist())
        meshes = meshes_of_table(table)
        return cls(table, meshes, box[:, :3], box[:, 3:], is_drawn, places, names)

    def pair(self, clash: Clash) -> list[int]:
        """Find both elements of a clash."""
        return [self._row(clash, side) for side in PAIR]

    def _row(self, clash: Clash, side: str) -> int:
        """Find an element, of several with its GlobalId the one in the file that the row names."""
        found = self.places[clash[side]]
        files = self.table["file_name"]
        named = [each for each in found if files[each].as_py() == clash.get(f"{side}_file")]
        return (named or found)[0]

    def said(self, row: int) -> dict[str, Any]:
        """Give name, ifc_class, storey and file_name of an element."""
        return {name: self.table[name][row].as_py() for name in SAID}

    def require(self, caller: str, clashes: Iterable[Clash], path: Path) -> None:
        """Make sure that the elements of clashes are there.

        Raises
        ------
        ValueError
            If one is not.
        """
        for each in (clash[side] for clash in clashes for side in PAIR):
            if each not in self.places:
                message = f"{caller}: '{path}': element '{each}' is in none of the models"
                raise ValueError(message)

    def see(
        self, clash: Clash, pair: list[int], before: bytes | None = None
    ) -> tuple[Snapshot, list[int]]:
        """See a clash with what is around it, and say which other elements are visible.

        `before` is a picture that may be the same one, see `snapshot`.
        """
        given = [clash.get(axis) for axis in "xyz"]
        low = self.low[pair].max(axis=0)
        middle = (low + self.high[pair].min(axis=0)) / 2
        point = middle if None in given else np.array(given, np.float64)
        meshes = self.meshes.take(pair)
        around = self._around(point, radius_of(point, meshes), pair)
        seen = snapshot(point, meshes, self.meshes.take(around), before)
        return seen, [around[k] for k in seen.others]

    def _around(self, point: Floats, radius: float, pair: Sequence[int]) -> list[int]:
        """Give the elements nearest to a place, without a pair of them."""
        apart = np.maximum(np.maximum(self.low - point, point - self.high), 0).max(axis=1)
        apart[~self.is_drawn] = np.inf
        apart[list(pair)] = np.inf
        near = np.flatnonzero(apart <= radius)
        order: list[int] = near[np.argsort(apart[near], kind="stable")[:MOST_OTHERS]].tolist()
        return order


def clashes_of(result: "Result", path: Path) -> tuple[list[Clash], list[Path]]:
    """Give the clashes that a query gives, and the models that their elements are from.

    Raises
    ------
    ValueError
        If its rows have no `a` and `b`.
    """
    clashes = clashes_in(WRITER, dicts(result.relation), list(result.columns), path)
    files = files_named(clashes)
    if clashes and not files:
        ids = {row[side] for row in clashes for side in PAIR}
        read = tables_read(result.con, result.statement)
        files = [Path(name) for name in files_of(result.con, result.statement, read, ids)]
    return clashes, files


def clashes_in(
    caller: str, rows: Iterable[Clash], columns: Sequence[str], path: Path
) -> list[Clash]:
    """Take the rows that name two elements."""
    if missing := set(PAIR) - set(columns):
        message = (
            f"{caller}: rows of '{path}' must be clashes with the GlobalIds a and b, got "
            f"{', '.join(columns)}, without {', '.join(sorted(missing))}"
        )
        raise ValueError(message)
    return [understood(caller, path, row) for row in rows if row["a"] and row["b"]]


def files_named(clashes: Sequence[Clash]) -> list[Path]:
    """Give the models that rows name."""
    named = {row.get(name) for row in clashes for name in ("a_file", "b_file", "file_name")}
    return [Path(name) for name in named if name]


def read_building(
    caller: str, clashes: Sequence[Clash], files: Sequence[Path], path: Path
) -> Building | None:
    """Read the models of clashes; None if there are no clashes.

    Raises
    ------
    FileError
        If one cannot be read.
    ValueError
        If none is known, or an element is in none of them.
    """
    if not clashes:
        return None
    if not files:
        other = "come from tables with a column file_name" if caller == WRITER else "models must"
        message = (
            f"{caller}: rows of '{path}' must say in columns a_file and b_file of which models "
            f"their elements are, or {other}"
        )
        raise ValueError(message)
    with files_read_by(caller):
        building = Building.of(sorted(files))
    building.require(caller, clashes, path)
    return building


def pictures_of(clashes: Sequence[Clash], building: Building) -> Iterator[bytes]:
    """Draw each clash, as PNG."""

    def draw(clash: Clash) -> bytes:
        return building.see(clash, building.pair(clash))[0].png

    for first in range(0, len(clashes), BATCH):
        with workers() as pool:
            yield from pool.map(draw, clashes[first : first + BATCH])


def coloured(clashes: Sequence[Clash], building: Building) -> dict[int, Painted]:
    """Say how clashing elements are painted: by their group where rows have one, else by side.

    An element in several groups, or on both sides, has the colour of the first.

    Returns
    -------
    dict
        Rows of the building in the order of the clashes of each group or side.
    """
    if not clashes:
        return {}
    pairs = [building.pair(clash) for clash in clashes]
    painted: dict[int, Painted] = {}
    if "group_id" not in clashes[0]:
        for side, colour in enumerate(COLOURS):
            for pair in pairs:
                painted.setdefault(pair[side], Painted(PAIR[side], colour))
        return painted
    paints: dict[Any, Painted] = {}
    for clash, pair in zip(clashes, pairs, strict=True):
        group = clash["group_id"]
        turn = PALETTE[len(paints) % len(PALETTE)]
        paint = paints.setdefault(group, Painted(f"group {group}", turn))
        for row in pair:
            painted.setdefault(row, paint)
    return painted
