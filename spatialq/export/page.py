"""Web pages in one file, which need no network: tables that are sorted and filtered, pictures."""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from string import Template

from spatialq.export.atomic import whole
from spatialq.export.bcf import NO_XML

VOID = ("img", "input")
"""Elements without content."""
NOTHING_ELSE = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"


class Html(str):
    """Text that is markup: all other text is escaped."""

    __slots__ = ()


Cell = str | int | float | None
"""Text, perhaps markup, or a number, of which up to three decimals are shown."""


def html(value: Cell) -> Html:
    """Write a value as markup, without characters that no page can have."""
    if isinstance(value, Html):
        return value
    if isinstance(value, float):
        value = f"{value:.3f}".rstrip("0").rstrip(".")
    return Html("" if value is None else escape(NO_XML.sub("", str(value))))


def tag(name: str, *content: Cell, **attributes: Cell) -> Html:
    """Write an element; of attributes those that are None are left out, `class_` is class."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(map(html, content))
    return Html(f"<{name}{said}/>" if name in VOID else f"<{name}{said}>{inner}</{name}>")


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    id_: str | None = None,
    groups: Sequence[Cell] | None = None,
) -> Html:
    """Write a table that is sorted by its headers.

    Parameters
    ----------
    caption : str
    columns : sequence of str
    rows : iterable of sequences of cells
        Numbers are aligned to the right.
    id_ : str, optional
    groups : sequence of cells, optional
        What each row belongs to, for the filter.
    """
    heads = (tag("th", tag("button", name, type="button"), scope="col") for name in columns)
    lines = []
    for number, row in enumerate(rows):
        cells = [tag("td", each, class_=None if isinstance(each, str | None) else "n")
                 for each in row]  # fmt: skip
        lines.append(tag("tr", *cells, "\n", data_group=groups[number] if groups else None))
    body = tag("tbody", *lines)
    inner = (tag("caption", caption), tag("thead", tag("tr", *heads)), body)
    return tag("div", tag("table", *inner, id=id_), class_="scroll")


def figure(id_: str, png: bytes, width: int, height: int, alt: str, *caption: Cell) -> Html:
    """Write a picture that is part of the page."""
    source = Html(f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}")
    image = tag("img", src=source, width=width, height=height, alt=alt, loading="lazy")
    return tag("figure", image, tag("figcaption", *caption), id=id_)


def write_page(path: Path, title: str, content: Iterable[Html]) -> None:
    """Write a page; the same content gives the same bytes.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    template, policy = _template()
    text = Template(template).substitute(
        policy=policy, title=html(title), content="\n".join(content)
    )
    with whole(path) as partial:
        partial.write_bytes(text.encode("utf-8"))


@cache
def _template() -> tuple[str, str]:
    """Read the page, and allow it its own style and script, whatever else texts might bring."""
    text = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    allowed = []
    for name in ("style", "script"):
        (inner,) = re.findall(f"<{name}>(.*?)</{name}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inner.encode("utf-8")).digest()).decode("ascii")
        allowed.append(f"{name}-src 'sha256-{digest}'")
    return text, "; ".join((NOTHING_ELSE, *allowed))
