"""Saved views of the page, in and out as viewpoints of BCF."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.export.bcf import Topic, View, write_archive
from spatialq.export.camera import DEFAULT_FOV, Camera
from spatialq.io.bcf import read_bcf
from spatialq.runtime.temporary import temporary_folder

MOST = 1000
MOST_COMPONENTS = 100_000
MOST_TITLE = 200
QUERY = "Query: "
"""Begins the description of a topic that has a query."""
AHEAD = 10.0
"""Metres from the eye to the point that a camera of BCF, which has none, turns around."""
CAMERA = ("eye", "target", "up", "fov")


class Views:
    """Views that were saved while the server runs."""

    def __init__(self) -> None:
        self._views: list[dict[str, Any]] = []
        self._lock = threading.Lock()

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
            If something of it is wrong.
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
        self._save(
            {
                "title": title.strip(),
                "camera": {name: camera.get(name) for name in CAMERA},
                "components": components,
                "query": query,
            }
        )

    def _save(self, view: dict[str, Any]) -> None:
        with self._lock:
            if len(self._views) >= MOST:
                message = f"view: {MOST} views may be saved, and they are"
                raise ValueError(message)
            self._views.append({"id": len(self._views), **view})

    def bcf(self) -> bytes:
        """Give all views as a BCF archive of version 2.1."""
        topics = []
        for view in self.said():
            given = {name: value for name, value in view["camera"].items() if value is not None}
            seen = View(Camera.of("view", given), tuple(view["components"]), {}, None, None)
            topics.append(
                Topic(
                    f"view {view['id']} {view['title']}",
                    view["title"],
                    seen,
                    topic_type="View",
                    description=f"{QUERY}{view['query']}" if view["query"] else None,
                )
            )
        with temporary_folder("spatialq_bcf_") as folder:
            write_archive(folder / "views.bcf", topics)
            return (folder / "views.bcf").read_bytes()

    def read_bcf(self, data: bytes) -> None:
        """Add the viewpoints of a BCF archive.

        Raises
        ------
        FileError
            If it is none.
        """
        with temporary_folder("spatialq_bcf_") as folder:
            path = Path(folder / "views.bcf")
            path.write_bytes(data)
            rows = read_bcf(path).rows
        topics = {each["topic"]: each for each in rows["topics"]}
        selected: dict[Any, list[str]] = {}
        for each in rows["components"]:
            if each["role"] == "selection" and each["global_id"]:
                of_view = each["topic"], each["viewpoint"]
                selected.setdefault(of_view, []).append(each["global_id"])
        for each in rows["viewpoints"]:
            camera = _camera(each)
            if camera is None:
                continue
            topic = topics.get(each["topic"], {})
            said = topic.get("description") or ""
            self._save(
                {
                    "title": (topic.get("title") or "View")[:MOST_TITLE],
                    "camera": camera,
                    "components": selected.get((each["topic"], each["viewpoint"]), []),
                    "query": said.removeprefix(QUERY) if said.startswith(QUERY) else None,
                }
            )


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
