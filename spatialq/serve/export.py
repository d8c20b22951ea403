"""The page with its tiles as files, for any web server or a double click: nobody answers queries.

A browser fetches nothing for a page that was opened from a disk, but runs scripts that are beside
it. So each file that the page asks for is a script, which hands over base64 of gzip.
"""

import gzip
import json
import shutil
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.errors import FileError
from spatialq.export.atomic import PREFIX, require_writable, said_of
from spatialq.runtime.temporary import temporary_folder
from spatialq.serve.app import BUNDLE, NO_PAGE, PAGE
from spatialq.serve.cloud_tiles import TILESET
from spatialq.serve.sources import COMMAND

if TYPE_CHECKING:
    from spatialq.serve.scene import Cloud, Scene

INDEX = "index.html"
POLICY = (
    "default-src 'none'; script-src 'self' file: 'wasm-unsafe-eval'; style-src 'self' file:; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
"""That of the server, but for what a page can state only in a header, and without any fetch."""
HEAD = f"""<head>
  <meta http-equiv="Content-Security-Policy" content="{POLICY}">
  <meta name="spatialq-export">"""
"""Begins the head of the page; by the name the page knows that it was exported."""
NOT_COLOURED = ("x", "y", "z", "red", "green", "blue")
"""Columns that the page does not offer to colour by."""
TILES = (".json", ".glb")


def require_folder(folder: Path, page: Path = PAGE) -> None:
    """Reject a folder that `write_page` cannot write, before work is done for it.

    Raises
    ------
    FileError
        If there are files in the folder, it cannot be written, or the page is not built.
    """
    if not (page / BUNDLE).is_file():
        raise FileError(NO_PAGE)
    if not folder.exists():
        require_writable(folder)
    elif not folder.is_dir() or any(folder.iterdir()):
        raise FileError.of(COMMAND, folder, "must be a new or empty folder")


def write_page(scene: "Scene", folder: Path, page: Path = PAGE) -> dict[str, Any]:
    """Write all that the page asks for, but for queries and rows: the whole folder or nothing.

    Parameters
    ----------
    scene : Scene
        Whose tiles are made here.
    folder : Path
        That is not there yet, or empty.
    page : Path
        Folder of the page.

    Returns
    -------
    dict
        output, points, elements, bytes.

    Raises
    ------
    FileError
        As `require_folder`.
    ValueError
        If the tiles of a cloud cannot be made.
    """
    require_folder(folder, page)
    scene.build()
    for cloud in scene.clouds:
        if cloud.message:
            raise ValueError(cloud.message)
    with said_of(folder), temporary_folder(PREFIX, folder.resolve().parent) as parts:
        new = parts / "new"
        shutil.copytree(page, new)
        index = (page / INDEX).read_text(encoding="utf-8")
        (new / INDEX).write_text(index.replace("<head>", HEAD, 1), encoding="utf-8")
        for name, value in (
            ("scene", scene.said()), ("elements", scene.elements), ("planes", scene.planes),
        ):  # fmt: skip
            _write(new / f"{name}.json", json.dumps(value, allow_nan=False).encode())
        for model in scene.models:
            if model.box is not None:
                _write_tiles(model.folder, new / "models" / str(model.number))
        for cloud in scene.clouds:
            _write_cloud(scene, cloud, new)
        size = sum(path.stat().st_size for path in new.rglob("*") if path.is_file())
        if folder.exists():
            folder.rmdir()
        new.rename(folder)
    points = sum(each.target.points for each in scene.clouds)
    said = {"points": points, "elements": len(scene.elements), "bytes": size}
    return {"output": str(folder), **said}


def _write_cloud(scene: "Scene", cloud: "Cloud", target: Path) -> None:
    """Write tiles, point_ids, and the columns by which points can be coloured."""
    assert cloud.tiles is not None
    own = target / "clouds" / str(cloud.number)
    _write(own / TILESET, (cloud.tiles.folder / TILESET).read_bytes())
    _write_tiles(cloud.tiles.folder / "tiles", own / "tiles")
    nodes = {name: cloud.ids_of(name) for name in cloud.tiles.about["names"]}
    for name, ids in nodes.items():
        _write(own / "ids" / name, ids.astype("<i8").tobytes())
    with scene.opened.con.cursor() as con:
        for place, each in enumerate(cloud.columns):
            if each["name"] in NOT_COLOURED or each["min"] == each["max"]:
                continue
            folder = target / "column" / str(cloud.number) / str(place)
            for name, ids in nodes.items():
                _write(folder / name, cloud.values(con, place, ids))


def _write_tiles(source: Path, target: Path) -> None:
    """Write all tiles and tilesets of a folder."""
    for path in source.rglob("*"):
        if path.suffix in TILES:
            _write(target / path.relative_to(source), path.read_bytes())


def _write(path: Path, data: bytes) -> None:
    """Write a file as a script, which is named like the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = b64encode(gzip.compress(data, mtime=0)).decode("ascii")
    script = path.with_name(f"{path.name}.js")
    script.write_text(f'spatialqFile("{text}")\n', encoding="ascii")
