"""BCF archives, versions 2.1 and 3.0: topics with a viewpoint, the same bytes each time."""

import re
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from spatialq.export.atomic import whole
from spatialq.export.camera import Camera
from spatialq.io.archives import DAMAGED

VERSIONS = ("2.1", "3.0")
DATE = datetime(2000, 1, 1, tzinfo=UTC)
"""Of topics, unless one is given: the time of writing would make other bytes each time."""
AUTHOR = "spatialq"
NAMES = uuid.UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")
"""The name space of what GUIDs are made of."""
VIEWPOINT, SNAPSHOT = "viewpoint.bcfv", "snapshot.png"
"""What BIMcollab wants the files of the first viewpoint of a topic to be called."""
IFC_GUID = re.compile(r"[0-9A-Za-z_$]{22}")
NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot have."""
DECLARATION = "<?xml version='1.0' encoding='UTF-8'?>"
FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""Of zip."""


@dataclass(frozen=True)
class Comment:
    """What somebody said of a topic."""

    text: str
    author: str | None = None
    date: datetime | None = None


@dataclass(frozen=True)
class View:
    """What a viewer is to show of a topic.

    Parameters
    ----------
    camera : Camera, optional
        In perspective. Archives of version 3.0 must have one.
    selected : tuple of str
        GlobalIds of elements.
    coloured : mapping of str to sequence of str
        RRGGBB or AARRGGBB to GlobalIds.
    shown : tuple of str, optional
        The GlobalIds of all elements that are visible; None for everything.
    snapshot : bytes, optional
        PNG.
    cut : tuple of float, optional
        A point: what is between the camera and the plane through it, across the view, is cut off.
    """

    camera: Camera | None
    selected: tuple[str, ...]
    coloured: Mapping[str, Sequence[str]]
    shown: tuple[str, ...] | None
    snapshot: bytes | None
    cut: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Topic:
    """An issue.

    Parameters
    ----------
    key : str
        What the GUID is made of: the same issue has the same GUID in each archive.
    """

    key: str
    title: str
    view: View
    topic_type: str = "Clash"
    status: str = "Open"
    priority: str | None = None
    labels: Sequence[str] = ()
    assigned_to: str | None = None
    due: datetime | None = None
    description: str | None = None
    models: Sequence[str] = ()
    comments: Sequence[Comment] = ()
    related: Sequence[str] = field(default=())
    """Keys of other topics."""
    position: int | None = None
    """Among the topics, for programs that list them in this order."""


def guid(*key: str) -> str:
    """Make a GUID of texts, in lower case as BCF 3.0 wants it."""
    return str(uuid.uuid5(NAMES, "\n".join(key)))


def write_archive(
    path: Path,
    topics: Iterable[Topic],
    *,
    version: str = "2.1",
    author: str = AUTHOR,
    date: datetime = DATE,
) -> int:
    """Write topics as a BCF archive.

    Parameters
    ----------
    path : Path
    topics : iterable of Topic
    version : '2.1' or '3.0'
    author : str
    date : datetime
        When topics were made. In UTC, if it has no zone.

    Returns
    -------
    int
        Topics written.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    number = 0
    known: dict[str, set[str]] = {"User": {author}}
    with whole(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        about = Element("Version", VersionId=version)
        if version == "2.1":
            SubElement(about, "DetailedVersion").text = version
        _add(archive, "bcf.version", _xml(about))
        for number, topic in enumerate(topics, 1):  # noqa: B007 (counted)
            folder = guid(topic.key)
            markup = _markup(topic, folder, version, author, _when(date))
            _add(archive, f"{folder}/markup.bcf", _xml(markup))
            _add(archive, f"{folder}/{VIEWPOINT}", _xml(_visinfo(topic, version)))
            if topic.view.snapshot is not None:
                _add(archive, f"{folder}/{SNAPSHOT}", topic.view.snapshot, is_packed=True)
            for name, values in (
                ("TopicType", [topic.topic_type]), ("TopicStatus", [topic.status]),
                ("Priority", [topic.priority]), ("TopicLabel", topic.labels),
                ("User", [topic.assigned_to, *(each.author for each in topic.comments)]),
            ):  # fmt: skip
                known.setdefault(name, set()).update(each for each in values if each)
        if version == "3.0":
            _add(archive, "extensions.xml", _xml(_extensions(known)))
    return number


@contextmanager
def snapshots_in(path: Path) -> Iterator[Callable[[str], bytes | None]]:
    """Give what finds the snapshot of a topic, by its key, in an archive that may be there."""
    with ExitStack() as opened:
        archive: zipfile.ZipFile | None = None
        with suppress(*DAMAGED):
            archive = opened.enter_context(zipfile.ZipFile(opened.enter_context(path.open("rb"))))

        def snapshot(key: str) -> bytes | None:
            with suppress(KeyError, *DAMAGED):
                if archive is not None:
                    member = archive.getinfo(f"{guid(key)}/{SNAPSHOT}")
                    # as they are written: what is packed could be of any size
                    if member.compress_type == zipfile.ZIP_STORED:
                        return archive.read(member)
            return None

        yield snapshot


def _add(archive: zipfile.ZipFile, name: str, data: bytes, *, is_packed: bool = False) -> None:
    member = zipfile.ZipInfo(name, FIRST_DAY)
    member.create_system, member.external_attr = 3, 0o644 << 16
    member.compress_type = zipfile.ZIP_STORED if is_packed else zipfile.ZIP_DEFLATED
    archive.writestr(member, data)


def _xml(root: Element) -> bytes:
    indent(root)
    # with an encoding, ElementTree writes each piece through a coder of its own
    return f"{DECLARATION}\n{tostring(root, encoding='unicode')}\n".encode(
        "utf-8", "xmlcharrefreplace"
    )


def _when(date: datetime) -> str:
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return f"{date.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def cleaned(text: str | None) -> str:
    """Give what XML can have of a text, without blanks around it."""
    return NO_XML.sub("", text or "").strip()


def _say(parent: Element, name: str, text: str | None) -> None:
    """Add an element with a text, unless it is blank: BCF 3.0 has no blank ones."""
    if kept := cleaned(text):
        SubElement(parent, name).text = kept


def _list(parent: Element, name: str, version: str) -> Element:
    """Give the place of the items of a list, which have an element of their own since 3.0."""
    return SubElement(parent, name) if version == "3.0" else parent


def _markup(topic: Topic, own: str, version: str, author: str, date: str) -> Element:
    is_new = version == "3.0"
    markup = Element("Markup")
    if topic.models:
        header = SubElement(markup, "Header")
        files = _list(header, "Files", version)
        for model in topic.models:
            _say(SubElement(files, "File"), "Filename", model)
    kind = {"TopicType": cleaned(topic.topic_type), "TopicStatus": cleaned(topic.status)}
    about = SubElement(markup, "Topic", {"Guid": own, **kind})
    _say(about, "Title", cleaned(topic.title) or "-")
    _say(about, "Priority", topic.priority)
    _say(about, "Index", None if topic.position is None else str(topic.position))
    labels = [each for each in topic.labels if cleaned(each)]
    place = _list(about, "Labels", version) if labels else about
    for label in labels:
        _say(place, "Label" if is_new else "Labels", label)
    _say(about, "CreationDate", date)
    _say(about, "CreationAuthor", author)
    _say(about, "DueDate", None if topic.due is None else _when(topic.due))
    _say(about, "AssignedTo", topic.assigned_to)
    _say(about, "Description", topic.description)
    place = _list(about, "RelatedTopics", version) if topic.related else about
    for key in topic.related:
        SubElement(place, "RelatedTopic", Guid=guid(key))
    above = about if is_new else markup
    view = guid(topic.key, "viewpoint")
    place = _list(above, "Comments", version) if topic.comments else above
    for number, comment in enumerate(topic.comments):
        said = SubElement(place, "Comment", Guid=guid(topic.key, "comment", str(number)))
        _say(said, "Date", date if comment.date is None else _when(comment.date))
        _say(said, "Author", cleaned(comment.author) or author)
        _say(said, "Comment", cleaned(comment.text) or "-")
        SubElement(said, "Viewpoint", Guid=view)
    place = _list(above, "Viewpoints", version)
    point = SubElement(place, "ViewPoint" if is_new else "Viewpoints", Guid=view)
    _say(point, "Viewpoint", VIEWPOINT)
    if topic.view.snapshot is not None:
        _say(point, "Snapshot", SNAPSHOT)
    _say(point, "Index", "0")
    return markup


def _visinfo(topic: Topic, version: str) -> Element:
    view, is_new = topic.view, version == "3.0"
    info = Element("VisualizationInfo", Guid=guid(topic.key, "viewpoint"))
    components = SubElement(info, "Components")
    hints = dict.fromkeys(("SpacesVisible", "SpaceBoundariesVisible", "OpeningsVisible"), "false")
    if not is_new:
        SubElement(components, "ViewSetupHints", hints)
    if view.selected:  # 2.1 has no empty lists
        _components(SubElement(components, "Selection"), view.selected)
    is_all = "true" if view.shown is None else "false"
    visibility = SubElement(components, "Visibility", DefaultVisibility=is_all)
    if is_new:
        SubElement(visibility, "ViewSetupHints", hints)
    if view.shown:
        _components(SubElement(visibility, "Exceptions"), view.shown)
    coloring = SubElement(components, "Coloring") if view.coloured else components
    for colour, ids in view.coloured.items():
        place = SubElement(coloring, "Color", Color=colour)
        _components(SubElement(place, "Components") if is_new else place, ids)
    if view.camera is None:
        return info
    forward = view.camera.axes()[2]
    camera = SubElement(info, "PerspectiveCamera")
    _place(camera, "CameraViewPoint", view.camera.eye)
    _place(camera, "CameraDirection", forward)
    _place(camera, "CameraUpVector", view.camera.axes()[1])
    _say(camera, "FieldOfView", repr(float(view.camera.fov or 60)))
    if is_new:
        _say(camera, "AspectRatio", repr(view.camera.width / view.camera.height))
    if view.cut is not None:
        plane = SubElement(SubElement(info, "ClippingPlanes"), "ClippingPlane")
        _place(plane, "Location", view.cut)
        _place(plane, "Direction", -forward)  # to what is invisible
    return info


def _components(parent: Element, global_ids: Iterable[str]) -> None:
    for each in global_ids:
        if IFC_GUID.fullmatch(each):
            SubElement(parent, "Component", IfcGuid=each)
        else:
            _say(SubElement(parent, "Component"), "AuthoringToolId", each)


def _place(parent: Element, name: str, place: Iterable[float]) -> None:
    point = SubElement(parent, name)
    for axis, value in zip("XYZ", place, strict=True):
        _say(point, axis, repr(float(value)))


def _extensions(known: Mapping[str, Iterable[str]]) -> Element:
    extensions = Element("Extensions")
    for name, plural in (
        ("TopicType", "TopicTypes"), ("TopicStatus", "TopicStatuses"), ("Priority", "Priorities"),
        ("TopicLabel", "TopicLabels"), ("User", "Users"),
    ):  # fmt: skip
        values = SubElement(extensions, plural)
        for value in sorted(known.get(name, ())):
            _say(values, name, value)
    return extensions
