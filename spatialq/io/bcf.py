"""BCF archives of versions 2.0, 2.1 and 3.0: topics, comments, viewpoints and their components."""

import math
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from spatialq.errors import FileError
from spatialq.io.archives import DAMAGED
from spatialq.io.files import require_file

READER = "read_bcf"
VERSIONS = ("2.0", "2.1", "3.0")
MAX_PART, MAX_READ = 64 << 20, 1 << 30
"""Bytes that one part, and all parts that are read, may unpack to: a topic has a few thousand."""

TEXT, TEXTS, TIME, PLACE = "VARCHAR", "VARCHAR[]", "TIMESTAMP", "DOUBLE[]"
TABLES = {
    "topics": {
        **dict.fromkeys(("topic", "title", "topic_type", "status", "priority"), TEXT),
        "position": "INTEGER",
        "labels": TEXTS,
        "created": TIME,
        "author": TEXT,
        "modified": TIME,
        "modified_by": TEXT,
        "due": TIME,
        **dict.fromkeys(("assigned_to", "stage", "description", "server_id"), TEXT),
        **dict.fromkeys(("links", "documents", "related", "models"), TEXTS),
        **dict.fromkeys(("project_id", "project", "bcf_version", "file_name"), TEXT),
    },
    "comments": {
        **dict.fromkeys(("topic", "comment_id"), TEXT),
        "created": TIME,
        **dict.fromkeys(("author", "comment", "viewpoint"), TEXT),
        "modified": TIME,
        **dict.fromkeys(("modified_by", "status", "verbal_status", "file_name"), TEXT),
    },
    "viewpoints": {
        **dict.fromkeys(("topic", "viewpoint"), TEXT),
        "position": "INTEGER",
        **dict.fromkeys(("viewpoint_file", "snapshot_file", "camera"), TEXT),
        **dict.fromkeys(("eye", "view_direction", "up"), PLACE),
        **dict.fromkeys(("fov", "view_height", "aspect_ratio"), "DOUBLE"),
        **dict.fromkeys(
            ("default_visibility", "spaces_visible", "space_boundaries_visible",
             "openings_visible"),
            "BOOLEAN",
        ),
        **dict.fromkeys(("lines", "clipping_planes", "bitmaps"), "INTEGER"),
        "file_name": TEXT,
    },
    "components": {
        **dict.fromkeys(("topic", "viewpoint", "role", "global_id"), TEXT),
        "visible": "BOOLEAN",
        **dict.fromkeys(("color", "originating_system", "authoring_tool_id", "file_name"), TEXT),
    },
}  # fmt: skip
"""The tables of an archive: column -> SQL type. Times are in UTC. A component has one row for each
list of its viewpoint that it is in: role selection, visibility or coloring."""


@dataclass
class Bcf:
    """What an archive holds: the rows of `TABLES`, and what is odd about it."""

    version: str
    rows: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {name: [] for name in TABLES}
    )
    warnings: list[str] = field(default_factory=list)


def read_bcf(path: Path) -> Bcf:
    """Read a BCF archive (`.bcf`, `.bcfzip`; versions 2.0, 2.1 and 3.0).

    Raises
    ------
    FileError
        If it is no zip, damaged, suspiciously large, has no `bcf.version` or one of another
        version, or a part of it is no XML or has a document type.
    """
    require_file(READER, path)
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return _Archive(path, archive).read()
    except FileError:
        raise
    except DAMAGED as error:
        raise FileError.of(READER, path, f"the zip cannot be unpacked: {error}") from error


class _Archive:
    """An open archive."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self.archive = path, archive
        # some programs write backslashes, others names in capitals
        self.members = {
            member.filename.replace("\\", "/").lower(): member for member in archive.infolist()
        }
        self.size = 0

    def read(self) -> Bcf:
        version = self._xml("bcf.version")
        if version is None:
            raise FileError.of(READER, self.path, "has no bcf.version, as a BCF archive must")
        found = Bcf(version.get("VersionId", ""))
        if found.version not in VERSIONS:
            reason = f"is BCF of version '{found.version}'; {', '.join(VERSIONS)} can be read"
            raise FileError.of(READER, self.path, reason)
        about = self._xml("project.bcfp")
        project = None if about is None else about.find("Project")
        of_all = {
            "project_id": None if project is None else project.get("ProjectId"),
            "project": _text(project, "Name"),
            "bcf_version": found.version,
        }
        for name in sorted(self.members):
            folder, _, part = name.rpartition("/")
            markup = self._xml(name) if part == "markup.bcf" and folder else None
            if markup is not None:
                self._read_topic(found, markup, folder, of_all)
        return found

    def _read_topic(
        self, found: Bcf, markup: Element, folder: str, of_all: dict[str, str | None]
    ) -> None:
        about = markup.find("Topic")
        if about is None:
            raise FileError.of(READER, self.path, f"'{folder}/markup.bcf' has no Topic")
        topic = about.get("Guid") or folder.rpartition("/")[2]
        own = {"topic": topic, "file_name": str(self.path)}
        found.rows["topics"].append({**_topic(markup, about), **of_all, **own})
        comments = [*markup.findall("Comment"), *about.findall("Comments/Comment")]
        found.rows["comments"].extend({**_comment(each), **own} for each in comments)
        for each in (*markup.findall("Viewpoints"), *about.findall("Viewpoints/ViewPoint")):
            row: dict[str, Any] = {
                "viewpoint": each.get("Guid"),
                "position": _whole(_text(each, "Index")),
                "viewpoint_file": _text(each, "Viewpoint"),
                "snapshot_file": _text(each, "Snapshot"),
                **own,
            }
            if row["viewpoint_file"] is not None:
                view = self._xml(f"{folder}/{row['viewpoint_file']}")
                if view is None:
                    found.warnings.append(f"'{folder}/{row['viewpoint_file']}' is missing")
                else:
                    row |= _view(view)
                    is_default = row["default_visibility"]
                    found.rows["components"].extend(
                        {**component, **own, "viewpoint": row["viewpoint"]}
                        for component in _components(view, is_default=is_default)
                    )
            found.rows["viewpoints"].append(row)

    def _xml(self, name: str) -> Element | None:
        """Parse a part; None if there is none."""
        member = self.members.get(name.replace("\\", "/").lower())
        if member is None:
            return None
        self.size += member.file_size
        if member.file_size > MAX_PART or self.size > MAX_READ:
            reason = (
                f"'{member.filename}' would unpack from {member.compress_size:,} to "
                f"{member.file_size:,} bytes, {self.size:,} in all: refused as a zip bomb"
            )
            raise FileError.of(READER, self.path, reason)
        try:
            return parse(self.archive.read(member))
        except (expat.ExpatError, LookupError, ValueError) as error:
            reason = f"'{member.filename}' is no XML that can be read: {error}"
            raise FileError.of(READER, self.path, reason) from error


def parse(data: bytes) -> Element:
    """Parse XML of any encoding that it declares, without namespaces.

    Raises
    ------
    ExpatError
        If it is not well-formed.
    ValueError
        If it has a document type, which BCF never has: entities in it could grow without limit.
    """
    builder, parser = TreeBuilder(), expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def start(name: str, attributes: dict[str, str]) -> None:
        builder.start(_local(name), {_local(key): value for key, value in attributes.items()})

    def refuse(*_: Any) -> None:
        message = "it has a document type, which BCF does not use"
        raise ValueError(message)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: builder.end(_local(name))
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse
    parser.Parse(data, True)  # noqa: FBT003 (expat takes it by position)
    return builder.close()


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _topic(markup: Element, topic: Element) -> dict[str, Any]:
    """Read what the versions write in different places: 2.0, 2.1, 3.0."""
    return {
        "title": _text(topic, "Title"),
        "topic_type": topic.get("TopicType"),
        "status": topic.get("TopicStatus"),
        "priority": _text(topic, "Priority"),
        "position": _whole(_text(topic, "Index")),
        "labels": _texts(topic, "Labels", "Labels/Label"),
        "created": _time(_text(topic, "CreationDate")),
        "author": _text(topic, "CreationAuthor"),
        "modified": _time(_text(topic, "ModifiedDate")),
        "modified_by": _text(topic, "ModifiedAuthor"),
        "due": _time(_text(topic, "DueDate")),
        "assigned_to": _text(topic, "AssignedTo"),
        "stage": _text(topic, "Stage"),
        "description": _text(topic, "Description"),
        "server_id": topic.get("ServerAssignedId"),
        "links": _texts(topic, "ReferenceLink", "ReferenceLinks/ReferenceLink"),
        "documents": _texts(
            topic,
            "DocumentReferences/ReferencedDocument",
            "DocumentReference/ReferencedDocument",
            "DocumentReferences/DocumentReference/Url",
            "DocumentReferences/DocumentReference/DocumentGuid",
        ),
        "related": [
            each.get("Guid")
            for place in ("RelatedTopics", "RelatedTopic", "RelatedTopics/RelatedTopic")
            for each in topic.findall(place)
            if each.get("Guid")
        ],
        "models": _texts(markup, "Header/File/Filename", "Header/Files/File/Filename"),
    }


def _comment(comment: Element) -> dict[str, Any]:
    viewpoint = comment.find("Viewpoint")
    return {
        "comment_id": comment.get("Guid"),
        "created": _time(_text(comment, "Date")),
        "author": _text(comment, "Author"),
        "comment": _text(comment, "Comment"),
        "viewpoint": None if viewpoint is None else viewpoint.get("Guid"),
        "modified": _time(_text(comment, "ModifiedDate")),
        "modified_by": _text(comment, "ModifiedAuthor"),
        "status": _text(comment, "Status"),
        "verbal_status": _text(comment, "VerbalStatus"),
    }


def _view(view: Element) -> dict[str, Any]:
    found: dict[str, Any] = {"default_visibility": None}
    for kind in ("Perspective", "Orthogonal"):
        camera = view.find(f"{kind}Camera")
        if camera is not None:
            found |= {
                "camera": kind.lower(),
                "eye": _place(camera.find("CameraViewPoint")),
                "view_direction": _place(camera.find("CameraDirection")),
                "up": _place(camera.find("CameraUpVector")),
                "fov": _number(_text(camera, "FieldOfView")),
                "view_height": _number(_text(camera, "ViewToWorldScale")),
                "aspect_ratio": _number(_text(camera, "AspectRatio")),
            }
    visibility = view.find("Components/Visibility")
    if visibility is not None:
        found["default_visibility"] = _truth(visibility.get("DefaultVisibility")) or False
    for place in ("Components/ViewSetupHints", "Components/Visibility/ViewSetupHints"):
        hints = view.find(place)
        if hints is not None:
            found |= {
                "spaces_visible": _truth(hints.get("SpacesVisible")),
                "space_boundaries_visible": _truth(hints.get("SpaceBoundariesVisible")),
                "openings_visible": _truth(hints.get("OpeningsVisible")),
            }
    pictures = (*view.findall("Bitmap"), *view.findall("Bitmaps"))
    return {
        **found,
        "lines": len(view.findall("Lines/Line")),
        "clipping_planes": len(view.findall("ClippingPlanes/ClippingPlane")),
        "bitmaps": sum(each.find("Reference") is not None for each in pictures)
        + len(view.findall("Bitmaps/Bitmap/Reference")),
    }


def _components(view: Element, *, is_default: bool | None) -> Iterator[dict[str, Any]]:
    """Give a row for each list that a component is in."""

    def row(role: str, each: Element, **more: Any) -> dict[str, Any]:
        return {
            "role": role,
            "global_id": each.get("IfcGuid"),
            "originating_system": _text(each, "OriginatingSystem"),
            "authoring_tool_id": _text(each, "AuthoringToolId"),
            **more,
        }

    for each in view.findall("Components/Component"):  # 2.0 has one list
        if _truth(each.get("Selected")):
            yield row("selection", each)
        yield row("visibility", each, visible=_truth(each.get("Visible", "true")))
        if each.get("Color"):
            yield row("coloring", each, color=each.get("Color"))
    for each in view.findall("Components/Selection/Component"):
        yield row("selection", each)
    for each in view.findall("Components/Visibility/Exceptions/Component"):
        yield row("visibility", each, visible=not is_default)
    for colour in view.findall("Components/Coloring/Color"):
        for each in (*colour.findall("Component"), *colour.findall("Components/Component")):
            yield row("coloring", each, color=colour.get("Color"))


def _text(parent: Element | None, name: str) -> str | None:
    """Give the text of a child; None where it is blank."""
    found = None if parent is None else parent.findtext(name)
    return found.strip() or None if found else None


def _texts(parent: Element, *places: str) -> list[str]:
    found = (each.text for place in places for each in parent.findall(place))
    return [text.strip() for text in found if text and text.strip()]


def _truth(text: str | None) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get((text or "").strip().lower())


def _number(text: str | None) -> float | None:
    with suppress(ValueError):
        number = float(text or "")
        return number if math.isfinite(number) else None
    return None


def _whole(text: str | None) -> int | None:
    with suppress(ValueError):
        number = int(text or "")
        return number if abs(number) < 1 << 31 else None
    return None


def _place(point: Element | None) -> list[float] | None:
    numbers = [_number(_text(point, axis)) for axis in "XYZ"]
    return [number for number in numbers if number is not None] if None not in numbers else None


def _time(text: str | None) -> datetime | None:
    """Give a time in UTC, without a zone; one without a zone is taken for UTC."""
    with suppress(ValueError, OverflowError):
        time = datetime.fromisoformat(text or "")
        return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
    return None
