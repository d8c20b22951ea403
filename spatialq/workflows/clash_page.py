"""Clashes as a web page in one file: summary, groups, the clashes, and pictures of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.database.partial_models import PAIR
from spatialq.export.atomic import WRITER
from spatialq.export.bcf import Comment
from spatialq.export.clash_view import HEIGHT, WIDTH
from spatialq.export.page import Cell, Html, figure, html, table, tag, write_page
from spatialq.runtime.threads import workers
from spatialq.workflows.clash_elements import Building, Clash, clashes_of, read_building

if TYPE_CHECKING:
    from spatialq.database.writers import Result

MOST_PICTURES = 200
"""Groups or clashes that have a picture: a page is to open at once, and to go by mail."""
BATCH = 64
"""Pictures that are drawn before they are written."""
MILLIMETRES = ("penetration", "thickness", "distance", "dx", "dy", "dz")
"""Columns in metres that a page has in millimetres."""
SHOWN_ELSEWHERE = (
    *(f"{side}{what}" for side in PAIR
      for what in ("", "_element", "_class", "_name", "_storey", "_storey_unified", "_file")),
    "group_id", "group_name", "topic", "file_name",
)  # fmt: skip
"""Columns that are not shown as they are."""
SHOWN_NAMES = 3
"""Models that a title names."""


def write(result: "Result", path: Path) -> int:
    """Write rows of clashes as a page; see `docs/clash_outputs.md`.

    Returns
    -------
    int
        Clashes written.

    Raises
    ------
    FileError
        If a model cannot be read, or the page cannot be written.
    ValueError
        If rows have no `a` and `b`, or these are not in the models.
    """
    clashes, files = clashes_of(result, path)
    building = read_building(WRITER, clashes, files, path)
    if building is None:
        write_page(path, "No clashes", [tag("p", "There are no clashes.")])
    else:
        page = _Page(clashes, building)
        write_page(path, page.title, page.content())
    return len(clashes)


class _Page:
    """A page while it is put together."""

    def __init__(self, clashes: Sequence[Clash], building: Building) -> None:
        self.clashes = clashes
        self.building = building
        self.pairs = [building.pair(each) for each in clashes]
        rows = sorted({row for pair in self.pairs for row in pair})
        self.elements = {row: building.said(row) for row in rows}
        files = {each["file_name"] for each in self.elements.values()}
        self.models = sorted(building.names[each] for each in files)
        self.groups: dict[Any, list[int]] = {}
        """Numbers of the clashes of each group."""
        if "group_id" in clashes[0]:
            for number, clash in enumerate(clashes):
                self.groups.setdefault(clash["group_id"], []).append(number)
            self.groups = dict(sorted(self.groups.items(), key=lambda each: _by_number(each[0])))
        issues = [numbers[0] for numbers in self.groups.values()] or range(len(clashes))
        self.pictured = dict.fromkeys(list(issues)[:MOST_PICTURES])
        """Numbers of the clashes of which there are pictures, in order."""
        self.issues = len(issues)

    @property
    def title(self) -> str:
        """Of the page."""
        more = len(self.models) - SHOWN_NAMES
        named = ", ".join(self.models[:SHOWN_NAMES])
        return f"Clashes of {named}" + (f" and {more} more models" if more > 0 else "")

    def content(self) -> Iterator[Html]:
        """Write all below the title."""
        yield tag("p", self._summary())
        yield tag("h2", "Summary")
        yield self._counts()
        if self.groups:
            yield tag("h2", "Groups")
            yield self._groups()
        yield tag("h2", "Clashes")
        yield self._controls()
        yield self._table()
        yield tag("h2", "Pictures")
        yield from self._pictures()

    def _summary(self) -> str:
        groups = f" in {len(self.groups):,} groups" if self.groups else ""
        of = f"{len(self.models):,} models: " if len(self.models) > 1 else ""
        return (
            f"{len(self.clashes):,} clashes{groups} of {len(self.elements):,} elements of "
            f"{of}{', '.join(self.models)}."
        )

    def _counts(self) -> Html:
        """Count the clashes by classes and relation."""
        deepest: dict[tuple[str, ...], float] = {}
        counts: Counter[tuple[str, ...]] = Counter()
        for clash, pair in zip(self.clashes, self.pairs, strict=True):
            classes = sorted(self.elements[row]["ifc_class"] for row in pair)
            key = (*classes, str(clash.get("relation") or ""))
            counts[key] += 1
            deepest[key] = max(deepest.get(key, 0.0), clash.get("penetration") or 0.0)
        ordered = sorted(counts, key=lambda key: (-counts[key], key))
        columns = ("class", "other class", "relation", "clashes", "deepest, mm")
        rows: list[tuple[Cell, ...]] = [
            (*key, counts[key], round(1000 * deepest[key], 2)) for key in ordered
        ]
        return table("Clashes by the classes of both elements", columns, rows)

    def _groups(self) -> Html:
        rows = []
        for group, numbers in self.groups.items():
            elements = {row for number in numbers for row in self.pairs[number]}
            deepest = max(self.clashes[number].get("penetration") or 0.0 for number in numbers)
            name = self._group_name(numbers[0])
            place = self._link(numbers[0], name)
            rows.append((group, place, len(numbers), len(elements), _mm(deepest)))
        columns = ("group", "what", "clashes", "elements", "deepest, mm")
        return table("Groups, the one with the deepest clash first", columns, rows)

    def _group_name(self, number: int) -> str:
        """Name a group: of GlobalIds the elements, else as it is."""
        name = str(self.clashes[number].get("group_name") or "")
        known = [self.building.places.get(each) for each in name.split(" / ")]
        rows = [found[0] for found in known if found]
        return " / ".join(map(self._name, rows)) if len(rows) == len(known) else name

    def _name(self, row: int) -> str:
        said = self.elements.get(row) or self.building.said(row)
        return f"{said['ifc_class']} {said['name'] or ''}".strip()

    def _controls(self) -> Html:
        words = tag("input", id="words", type="search", placeholder="such as wall overlap")
        choice: list[Html] = []
        if self.groups:
            options = (
                tag("option", f"{group}: {self._group_name(numbers[0])}", value=group)
                for group, numbers in self.groups.items()
            )
            chosen = tag("select", tag("option", "all", value=""), *options, id="group")
            choice = [tag("label", "Group", chosen)]
        count = tag("span", id="shown", role="status")
        return tag("div", tag("label", "Rows with the words", words), *choice, count,
                   class_="controls")  # fmt: skip

    def _table(self) -> Html:
        """Write the clashes; a column of which no row says anything is left out."""
        columns: dict[str, list[Cell]] = {}
        for number, (clash, pair) in enumerate(zip(self.clashes, self.pairs, strict=True)):
            values: dict[str, Cell] = {"no.": self._link(number, str(number + 1))}
            if self.groups:
                values["group"] = clash["group_id"]
            for side, row in zip(PAIR, pair, strict=True):
                said = self.elements[row]
                what = tag("span", said["ifc_class"], class_=side)
                values[side] = Html(f"{what} {html(said['name'])} {tag('code', clash[side])}")
                values[f"{side} storey"] = clash.get(f"{side}_storey_unified") or said["storey"]
                if len(self.models) > 1:
                    values[f"{side} model"] = self.building.names[said["file_name"]]
            values |= {
                f"{name}, mm" if name in MILLIMETRES else name: _cell(name, clash[name])
                for name in clash
                if name not in SHOWN_ELSEWHERE
            }
            for name, value in values.items():
                columns.setdefault(name, []).append(value)
        said_of = {name: cells for name, cells in columns.items() if any(cells)}
        rows = zip(*said_of.values(), strict=True)
        groups = [clash["group_id"] for clash in self.clashes] if self.groups else None
        caption = "In the order of the query; x, y, z in metres"
        return table(caption, list(said_of), rows, id_="clashes", groups=groups)

    def _link(self, number: int, text: str) -> Cell:
        """Link to the picture of a clash, if there is one."""
        return tag("a", text, href=f"#clash-{number + 1}") if number in self.pictured else text

    def _pictures(self) -> Iterator[Html]:
        what = "group" if self.groups else "clash"
        few = ""
        if len(self.pictured) < self.issues:
            few = f" There are pictures of the first {len(self.pictured):,} of {self.issues:,}."
        yield tag(
            "p",
            f"One picture for each {what}: ",
            tag("span", "a", class_="a"),
            " in red, ",
            tag("span", "b", class_="b"),
            f" in blue, others around them in grey.{few}",
        )
        numbers = list(self.pictured)
        for first in range(0, len(numbers), BATCH):
            with workers() as pool:
                yield from pool.map(self._picture, numbers[first : first + BATCH])

    def _picture(self, number: int) -> Html:
        clash, pair = self.clashes[number], self.pairs[number]
        seen, _ = self.building.see(clash, pair)
        a, b = map(self._name, pair)
        depth = clash.get("penetration")
        how = [clash.get("relation"), None if depth is None else f"{1000 * depth:.1f} mm deep"]
        text = f"{a} / {b}: {', '.join(str(each) for each in how if each) or 'clash'}"
        group = (
            tag("strong", f"Group {clash['group_id']}, {self._group_name(number)}. ")
            if self.groups
            else ""
        )
        return figure(f"clash-{number + 1}", seen.png, WIDTH, HEIGHT, text,
                      group, f"{number + 1}. ", text)  # fmt: skip


def _by_number(group: Any) -> tuple[bool, Any]:
    """Order the ids of groups: numbers first."""
    return (False, group) if isinstance(group, int) else (True, str(group))


def _mm(metres: float) -> float:
    return round(1000 * metres, 2)


def _cell(name: str, value: Any) -> Cell:
    """Give a value of a row as a cell: lengths in millimetres, lists and comments as text."""
    if isinstance(value, float):
        return _mm(value) if name in MILLIMETRES else value
    if isinstance(value, list | tuple):
        return ", ".join(str(_cell(name, each)) for each in value)
    if isinstance(value, Comment):
        return value.text
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return str(value)
