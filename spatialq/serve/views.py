"""Saved views of the page, in and out as viewpoints of BCF."""

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.errors import FileError, files_read_by
from spatialq.export.atomic import has_ending, require_writable
from spatialq.export.bcf import AUTHOR, Topic, View, write_archive
from spatialq.export.camera import DEFAULT_FOV, Camera
from spatialq.io.bcf import Bcf, read_bcf
from spatialq.runtime.temporary import temporary_folder
from spatialq.serve.sources import COMMAND

MOST = 1000
MOST_COMPONENTS = 100_000
MOST_TITLE = 200
TYPE = "View"
"""Of topics."""
QUERY = "Query: "
"""Begins the description of a topic that has a query."""
AHEAD = 10.0
"""Metres from the eye to the point that a camera of BCF, which has none, turns around."""
CAMERA = ("eye", "target", "up", "fov")


class Views:
    """Views that were saved: in a file, or for as long as they are not forgotten.

    Parameters
    ----------
    path : Path, optional
        A BCF archive that has them, and is written each time that one is saved.

    Raises
    ------
    FileError
        If the file cannot be read or written, or has what is no saved view.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._views: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        if path is None:
            return
        if not has_ending(path, ".bcf"):
            message = f"{COMMAND}: views must be a file that ends in .bcf, got '{path}'"
            raise ValueError(message)
        require_writable(path)
        self._state = _state(path)
        if path.exists():
            with files_read_by(COMMAND):
                archive = read_bcf(path)
            if not _is_own(archive):
                reason = (
                    "has more than views that this page saved, which would be lost: name a new "
                    "file, and open this one in the panel Views"
                )
                raise FileError.of(COMMAND, path, reason)
            self._views = _numbered(_views(archive))

    def said(self) -> list[dict[str, Any]]:
        """Give all of them."""
        with self._lock:
            return list(self._views)

    def add(self, given: Mapping[str, Any]) -> None:
        """Save a view.

        Parameters
        ----------
        given : mapping
            title, camera (eye, target, up, fov), components (GlobalIds), query.

        Raises
        ------
        ValueError
            If something of it is wrong, or the file cannot be written.
        """
        title, camera = given.get("title"), given.get("camera")
        components, query = given.get("components") or [], given.get("query")
        if not isinstance(title, str) or not 0 < len(title.strip()) <= MOST_TITLE:
            message = f"view: title must be a text of up to {MOST_TITLE} characters, got {title!r}"
            raise ValueError(message)
        if not isinstance(camera, Mapping):
            message = f"view: camera must have eye and target, got {camera!r}"
            raise ValueError(message)
        Camera.of("view", {name: camera.get(name) for name in CAMERA})  # rejects a wrong one
        if (
            not isinstance(components, list)
            or len(components) > MOST_COMPONENTS
            or not all(isinstance(each, str) for each in components)
        ):
            message = f"view: components must be up to {MOST_COMPONENTS} GlobalIds"
            raise ValueError(message)
        if query is not None and not isinstance(query, str):
            message = f"view: query must be a text, got {query!r}"
            raise ValueError(message)
        view = {
            "title": title.strip(),
            "camera": {name: camera.get(name) for name in CAMERA},
            "components": components,
            "query": query,
        }
        self._save([view])

    def _save(self, more: list[dict[str, Any]]) -> None:
        with self._lock:
            views = _numbered([*self._views, *more])
            if len(views) > MOST:
                message = f"view: {MOST} views may be saved, got {len(views)}"
                raise ValueError(message)
            if self.path is not None:
                if _state(self.path) not in (self._state, None):
                    reason = "was changed by another program; start again to see its views"
                    raise FileError.of(COMMAND, self.path, reason)
                write_archive(self.path, _topics(views))
                self._state = _state(self.path)
            self._views = views

    def bcf(self) -> bytes:
        """Give all views as a BCF archive of version 2.1."""
        with temporary_folder("spatialq_bcf_") as folder:
            write_archive(folder / "views.bcf", _topics(self.said()))
            return (folder / "views.bcf").read_bytes()

    def read_bcf(self, data: bytes) -> None:
        """Add the viewpoints of a BCF archive.

        Raises
        ------
        FileError
            If it is none, or the file of the views cannot be written.
        ValueError
            If there are too many.
        """
        with temporary_folder("spatialq_bcf_") as folder:
            path = Path(folder / "views.bcf")
            path.write_bytes(data)
            views = _views(read_bcf(path))
        self._save(views)


def _state(path: Path) -> tuple[int, int] | None:
    """Tell whether a file was changed; None where it is not there."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return state.st_mtime_ns, state.st_size


def _numbered(views: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**view, "id": k} for k, view in enumerate(views)]


def _topics(views: list[dict[str, Any]]) -> Iterator[Topic]:
    for view in views:
        given = {name: value for name, value in view["camera"].items() if value is not None}
        seen = View(Camera.of("view", given), tuple(view["components"]), {}, None, None)
        yield Topic(
            f"view {view['id']} {view['title']}",
            view["title"],
            seen,
            topic_type=TYPE,
            description=f"{QUERY}{view['query']}" if view["query"] else None,
            position=view["id"],
        )


def _is_own(archive: Bcf) -> bool:
    """Whether an archive has nothing that writing its views again would lose."""
    topics, viewpoints = archive.rows["topics"], archive.rows["viewpoints"]
    return (
        all(each["author"] == AUTHOR and each["topic_type"] == TYPE for each in topics)
        and len(topics) == len(viewpoints)
        and not archive.rows["comments"]
        and all(each["snapshot_file"] is None and _camera(each) for each in viewpoints)
    )


def _views(archive: Bcf) -> list[dict[str, Any]]:
    """Give the viewpoints of an archive that have a camera, in the order of their topics."""
    rows = archive.rows
    topics = {each["topic"]: each for each in rows["topics"]}
    selected: dict[Any, list[str]] = {}
    for each in rows["components"]:
        if each["role"] == "selection" and each["global_id"]:
            of_view = each["topic"], each["viewpoint"]
            selected.setdefault(of_view, []).append(each["global_id"])
    found = []
    for each in rows["viewpoints"]:
        camera = _camera(each)
        if camera is None:
            continue
        topic = topics.get(each["topic"], {})
        said = topic.get("description") or ""
        view = {
            "title": (topic.get("title") or "View")[:MOST_TITLE],
            "camera": camera,
            "components": selected.get((each["topic"], each["viewpoint"]), []),
            "query": said.removeprefix(QUERY) if said.startswith(QUERY) else None,
        }
        found.append((topic.get("position") or 0, view))
    return [view for _, view in sorted(found, key=lambda each: each[0])]


def _camera(viewpoint: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give the camera of a viewpoint, looking at a point before it; None where there is none."""
    given = {name: viewpoint.get(name) for name in ("eye", "view_direction", "up")}
    if any(each is None for each in given.values()):
        return None
    target = np.array(given["eye"]) + AHEAD * np.array(given["view_direction"])
    camera = {
        "eye": given["eye"], "target": target.tolist(), "up": given["up"],
        "fov": viewpoint.get("fov") or DEFAULT_FOV,
    }  # fmt: skip
    try:
        Camera.of("view", camera)
    except ValueError:  # of another program's archive
        return None
    return camera
