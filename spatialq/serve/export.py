"""The page with its tiles as files, which any web server gives: nobody answers queries then."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.errors import FileError
from spatialq.runtime.temporary import temporary_folder
from spatialq.serve.app import BUNDLE, NO_PAGE, PAGE
from spatialq.serve.sources import COMMAND

if TYPE_CHECKING:
    from spatialq.serve.scene import Cloud, Scene

NOT_COLOURED = ("x", "y")


def write_page(scene: "Scene", folder: Path, page: Path = PAGE) -> dict[str, Any]:
    """Write all that the page asks for, but for queries and rows.

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
        If there are files in the folder, it cannot be written, or the page is not built.
    ValueError
        If the tiles of a cloud cannot be made.
    """
    if not (page / BUNDLE).is_file():
        raise FileError(NO_PAGE)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError.of(COMMAND, folder, "must be a new or empty folder")
    scene.build()
    for cloud in scene.clouds:
        if cloud.message:
            raise ValueError(cloud.message)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder("page_", folder.parent.resolve()) as parts:
        new = parts / "new"
        shutil.copytree(page, new)
        for name, value in (
            ("scene", {**scene.said(), "static": True}),
            ("elements", scene.elements),
            ("planes", scene.planes),
        ):
            _write(new / f"{name}.json", json.dumps(value, allow_nan=False).encode())
        for model in scene.models:
            if model.box is not None:
                shutil.copytree(model.folder, new / "models" / str(model.number))
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
    kept = shutil.ignore_patterns("*.npy", "nodes.json", "columns.json")
    shutil.copytree(cloud.tiles.folder, own, ignore=kept)
    nodes = {name: cloud.ids_of(name) for name in cloud.tiles.about["names"]}
    for name, ids in nodes.items():
        _write(own / "ids" / name, ids.astype("<i8").tobytes())
    with scene.opened.con.cursor() as con:
        for each in cloud.columns:
            if each["name"] in NOT_COLOURED or each["min"] == each["max"]:
                continue
            selection = cloud.selection(con, each["name"])
            assert selection is not None
            folder = target / "column" / str(cloud.number) / each["name"]
            for name, ids in nodes.items():
                _write(folder / name, selection.of(ids))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
