"""Files in object storage: `s3://bucket/tiles/*.laz`, of S3 or a server that speaks its protocol.

`as_path` makes of a URL an `ObjectPath`, which readers use as any other `Path`: `open` reads the
ranges of bytes that are asked for, and a library that wants a file of the system gets a temporary
copy by `os.fspath`. Endpoint, region and credentials come from the environment alone. What a
server answers is told in sentences of our own: its texts may repeat an access key.
"""

import atexit
import errno
import os
import re
import stat
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from io import BufferedIOBase, TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from spatialq.runtime import forks
from spatialq.runtime.temporary import temporary_folder

if TYPE_CHECKING:
    import pyarrow.fs

SCHEME = "s3:"
EXTRA = "pip install 'spatialq[s3]'"
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
OURS = re.compile(r"s3:/{1,2}(?=[^/])", re.IGNORECASE)
"""How a URL begins; `Path` makes one slash of two."""
SIGNED = re.compile(
    r"^[a-z0-9+.-]+:/{1,2}([^/]*@|[^@]*:[^@]*@)|[?&](X-Amz-|AWSAccessKeyId=|Signature=)",
    re.IGNORECASE,
)
"""What a URL has in it that has credentials."""
USER = re.compile(r"//[^/]*@")
"""A name and a password in an endpoint."""
STATUS = re.compile(r"status code: (\d{3})")
REFUSED = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "status code: 403")
FORKED = (
    "object storage was used before this process was forked, which has none of its threads; start "
    "processes by 'spawn'"
)
VARIABLES = "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL"
TRIES = 5
"""How often a request is repeated that met an error of the server or a closed connection."""
PATIENCE = 60
"""Seconds in which it is repeated."""
BLOCK, MOST_AHEAD = 1 << 16, 8 << 20
"""Bytes of the least request, and of the largest that reads ahead."""
FETCHED = 1 << 23
"""Bytes of a piece of an object that is fetched whole."""
MOST_COPIES = 8
"""Temporary copies that are kept at a time."""
FRESH = 2.0
"""Seconds for which it is not asked again what an object is."""
MOST_KNOWN = 10_000
FOLDER = "spatialq_objects_"


@dataclass(frozen=True)
class ObjectInfo:
    """What an object is."""

    key: str
    """Its name in the bucket."""
    size: int
    etag: str
    """What the server tells one state of the object from another by."""
    changed: int
    """Time of the last change in ns, of whole seconds: some servers tell parts of them in listings
    alone."""

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> "ObjectInfo":
        """Read what the library says."""
        changed = int(meta["last_modified"].timestamp()) * 1_000_000_000
        return cls(meta["path"], meta["size"], meta["e_tag"] or "", changed)


class ObjectPath(type(Path())):  # type: ignore[misc] # PosixPath or WindowsPath
    """The name of an object or of all objects that begin with it; made by `as_path`.

    Its text is the URL. `os.fspath` gives a temporary copy, which is there as long as no more than
    `MOST_COPIES` others were asked for since.
    """

    def __str__(self) -> str:
        if self.parts[:1] != (SCHEME,):
            return "/".join(self.parts)
        return f"{SCHEME}//{'/'.join(self.parts[1:])}"

    def __repr__(self) -> str:
        return f"ObjectPath({str(self)!r})"

    def __fspath__(self) -> str:
        return str(_copies.get(self))

    @property
    def bucket(self) -> str:
        """The bucket that the object is in."""
        return str(self.parts[1])

    @property
    def key(self) -> str:
        """The name in the bucket; empty for the bucket itself."""
        return "/".join(self.parts[2:])

    def found(self) -> ObjectInfo:
        """Ask what the object is.

        Raises
        ------
        FileNotFoundError
            If there is none.
        OSError
            If the server does not say.
        """
        url = str(self)
        known = _known.get(url)
        if known is not None:
            return known
        import obstore

        try:
            with told(self):
                found = ObjectInfo.of(obstore.head(store(self.bucket), self.key))
        except FileNotFoundError:
            # the answer has no text that tells a missing bucket from a missing object
            next(self.objects(), None)
            raise
        _known.put(url, found)
        return found

    def objects(self) -> Iterator[ObjectInfo]:
        """List all objects in the folder of this name, and in those in it, in order of names.

        Raises
        ------
        OSError
            If the server does not say.
        """
        import obstore

        with told(self):
            for some in obstore.list(store(self.bucket), self.key or None, chunk_size=1000):
                yield from map(ObjectInfo.of, some)

    def entries(self) -> tuple[list[ObjectInfo], list[str]]:
        """List the objects and the names of the folders in the folder of this name.

        Raises
        ------
        OSError
            If the server does not say.
        """
        import obstore

        with told(self):
            listed = obstore.list_with_delimiter(store(self.bucket), self.key or None)
        names = [str(each).rstrip("/").rpartition("/")[2] for each in listed["common_prefixes"]]
        return [ObjectInfo.of(each) for each in listed["objects"]], names

    def other(self, found: ObjectInfo) -> "ObjectPath":
        """Name another object of the bucket, about which the server will not be asked soon."""
        path = ObjectPath(SCHEME, self.bucket, found.key)
        _known.put(str(path), found)
        return path

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Give size and time of the last change, as of a file."""
        del follow_symlinks
        found = self.found()
        seconds = found.changed / 1e9
        numbers = (stat.S_IFREG | 0o444, 0, 0, 1, 0, 0, found.size, *(int(seconds),) * 3)
        precise = {"st_mtime_ns": found.changed, "st_mtime": seconds}
        return os.stat_result(numbers, precise)

    def is_file(self) -> bool:
        """Whether there is such an object."""
        try:
            return bool(self.key) and self.found() is not None
        except FileNotFoundError:
            return False

    def is_dir(self) -> bool:
        """Whether there are objects in a folder of this name."""
        return next(self.objects(), None) is not None

    def exists(self, **_: object) -> bool:
        """Whether there is such an object or folder."""
        return self.is_file() or self.is_dir()

    def iterdir(self) -> Iterator["ObjectPath"]:
        """Give the objects and folders in the folder of this name."""
        objects, folders = self.entries()
        yield from (self.other(each) for each in objects)
        yield from (self / name for name in folders)

    def resolve(self, strict: bool = False) -> "ObjectPath":  # noqa: FBT001, FBT002 (as Path has it)
        """Give the path itself: it is absolute."""
        del strict
        return self

    def absolute(self) -> "ObjectPath":
        """Give the path itself."""
        return self

    def is_absolute(self) -> bool:
        """Whether it depends on no folder: always."""
        return True

    def open(
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Open the object to be read range by range.

        Raises
        ------
        OSError
            If there is none, or it was to be written.
        """
        del buffering
        if not set(mode) <= set("rbt"):
            raise OSError(errno.EROFS, "objects are not written piece by piece", str(self))
        file: Any = _Ranges(self, self.found())
        return file if "b" in mode else TextIOWrapper(file, encoding, errors, newline)

    def fetch(self, target: Path) -> None:
        """Write the whole object into a file.

        Raises
        ------
        OSError
            If it cannot be read, was changed since it was found, or the file not be written.
        """
        import obstore

        etag = self.found().etag
        options: Any = {"if_match": etag} if etag else {}
        with told(self):
            got = obstore.get(store(self.bucket), self.key, options=options)
            pieces = got.stream(FETCHED)
            with target.open("wb") as file:
                for piece in pieces:
                    file.write(piece)

    def read_bytes(self) -> bytes:
        """Read the whole object.

        Raises
        ------
        OSError
            If it cannot be read.
        """
        import obstore

        with told(self):
            return bytes(obstore.get(store(self.bucket), self.key).bytes())

    def put(self, content: bytes | Path, *, before: str | None = None, new: bool = False) -> str:
        """Write the object, whole or not at all, and give its ETag.

        Parameters
        ----------
        content : bytes or Path
            A file, which may be large.
        before : str, optional
            Only if the object has this ETag.
        new : bool
            Only if there is no such object.

        Raises
        ------
        FileExistsError
            If the condition does not hold.
        OSError
            If it cannot be written.
        """
        import obstore

        mode: Any = {"e_tag": before} if before is not None else "create" if new else "overwrite"
        _known.forget(str(self))
        with told(self):
            return str(obstore.put(store(self.bucket), self.key, content, mode=mode)["e_tag"])

    def remove(self, keys: Sequence[str] | None = None) -> None:
        """Remove the object, or others of the bucket.

        Raises
        ------
        OSError
            If the server does not.
        """
        import obstore

        with told(self):
            obstore.delete(store(self.bucket), self.key if keys is None else list(keys))


def is_url(given: object) -> bool:
    """Whether a path or pattern is a URL, of object storage or not."""
    if isinstance(given, ObjectPath):
        return True
    text = given if isinstance(given, str) else str(given) if isinstance(given, Path) else ""
    return bool(URL.match(text) or OURS.match(text))


def as_path(given: str | os.PathLike[str]) -> Path:
    """Make the path of a name: an `ObjectPath` of a URL.

    Raises
    ------
    ValueError
        If it is a URL that cannot be read, or has credentials in it.
    """
    if isinstance(given, ObjectPath) or not is_url(given):
        return given if isinstance(given, Path) else Path(given)
    text = str(given)
    if SIGNED.search(text):
        message = (
            "a URL must be without credentials, such as 's3://bucket/tile.laz': they are taken "
            f"from the environment, {VARIABLES}"
        )
        raise ValueError(message)
    if not OURS.match(text):
        shown = text.partition("?")[0]  # behind it may be a signature of any kind
        message = f"URLs of object storage begin with 's3://', got {shown!r}"
        raise ValueError(message)
    return ObjectPath(SCHEME, *OURS.sub("", text).split("/"))


def require_url(caller: str, given: str | os.PathLike[str]) -> ObjectPath:
    """Give the path of a URL that a user wrote.

    Raises
    ------
    ValueError
        As `as_path`, with the name of the caller.
    """
    try:
        path = as_path(given)
    except ValueError as error:
        message = f"{caller}: {error}"
        raise ValueError(message) from None
    assert isinstance(path, ObjectPath)
    return path


@cache
def store(bucket: str) -> Any:
    """Give the client of a bucket, which is the same for all threads.

    Raises
    ------
    OSError
        If the package that it needs is not installed.
    """
    try:
        from obstore.store import S3Store
    except ImportError:
        raise OSError(errno.ENOSYS, f"URLs of object storage need obstore: {EXTRA}") from None
    endpoint, region = _place()
    # a server of one's own, such as MinIO, is often without TLS
    client: Any = {"allow_http": endpoint.startswith("http://"), "connect_timeout": "10s"}
    given: Any = {"endpoint": endpoint} if endpoint else {}
    retries: Any = {"max_retries": TRIES, "retry_timeout": _seconds(PATIENCE)}
    return S3Store(bucket, region=region, client_options=client, retry_config=retries, **given)


def is_named() -> bool:
    """Whether the environment says anything of object storage, and its packages are installed."""
    if not any(name.startswith("AWS_") for name in os.environ):
        return False
    return all(find_spec(package) is not None for package in ("fsspec", "obstore"))


def arrow_filesystem() -> "pyarrow.fs.FileSystem":
    """Give the file system with which pyarrow reads ranges of Parquet files."""
    from pyarrow.fs import S3FileSystem

    endpoint, region = _place()
    scheme, _, host = endpoint.partition("://")
    is_public = os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true")
    given: Any = {"anonymous": True} if is_public else {}
    if endpoint:
        given |= {"endpoint_override": host, "scheme": scheme}
    return S3FileSystem(region=region, **given)


def _place() -> tuple[str, str]:
    """Read the endpoint, empty for that of AWS, and the region."""
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    endpoint = next((os.environ[name] for name in names if os.environ.get(name)), "")
    regions = (os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION"))
    return endpoint.rstrip("/"), next((each for each in regions if each), "us-east-1")


def _seconds(count: int) -> Any:
    from datetime import timedelta

    return timedelta(seconds=count)


@contextmanager
def told(path: ObjectPath) -> Iterator[None]:
    """Tell errors of the library as errors of the system, each with a sentence of ours.

    Raises
    ------
    OSError
        Also in a fork of a process that used the library, which would wait for threads for ever.
    """
    if not forks.may_use_threads("obstore"):
        raise OSError(errno.ENOTSUP, FORKED, str(path))
    try:
        yield
    except Exception as error:
        if type(error).__module__ != "obstore.exceptions" and not (
            isinstance(error, FileNotFoundError) and error.errno is None
        ):
            raise
        raise _sentence(error, path) from None


def _sentence(error: Exception, path: ObjectPath) -> OSError:
    import obstore.exceptions as kinds

    text, url = str(error), str(path)
    if isinstance(error, kinds.AlreadyExistsError | kinds.PreconditionError):
        return FileExistsError(errno.EEXIST, "was changed meanwhile", url)
    if "NoSuchBucket" in text:
        return OSError(errno.ENXIO, f"there is no bucket '{path.bucket}'", url)
    if isinstance(error, FileNotFoundError | kinds.NotFoundError):
        return FileNotFoundError(errno.ENOENT, "there is no such object", url)
    is_refused = isinstance(error, kinds.PermissionDeniedError | kinds.UnauthenticatedError)
    if is_refused or any(each in text for each in REFUSED):
        reason = f"the server refuses access; look at {VARIABLES}"
        return PermissionError(errno.EACCES, reason, url)
    if "169.254.169.254" in text or "CredentialsProvider" in text:
        reason = f"there are no credentials in the environment: set {VARIABLES}"
        return PermissionError(errno.EACCES, reason, url)
    status = STATUS.search(text)
    if status is not None:
        reason = f"the server answers with status {status[1]}, also when asked again"
        return OSError(errno.EIO, reason, url)
    where = USER.sub("//", _place()[0]) or "that of AWS"
    reason = f"the server ({where}) cannot be reached or ends connections, also when asked again"
    return OSError(errno.EIO, reason, url)


class _Known:
    """What objects were when the server was last asked, for a moment."""

    def __init__(self) -> None:
        self._lock = forks.lock()
        self._found: dict[str, tuple[float, ObjectInfo]] = {}

    def get(self, url: str) -> ObjectInfo | None:
        with self._lock:
            since, found = self._found.get(url, (0.0, None))
            return found if time.monotonic() - since < FRESH else None

    def put(self, url: str, found: ObjectInfo) -> None:
        with self._lock:
            if len(self._found) >= MOST_KNOWN:
                self._found.clear()
            self._found[url] = time.monotonic(), found

    def forget(self, url: str) -> None:
        with self._lock:
            self._found.pop(url, None)


class _Copies:
    """Temporary copies of whole objects, of which the least recently used is removed."""

    def __init__(self) -> None:
        self._lock = forks.lock()
        self._stack = ExitStack()
        self._folder: Path | None = None
        self._copies: OrderedDict[tuple[str, str], Path] = OrderedDict()
        self._number = 0

    def get(self, path: ObjectPath) -> Path:
        key = str(path), path.found().etag
        with self._lock:
            if key in self._copies and self._copies[key].exists():
                self._copies.move_to_end(key)
                return self._copies[key]
            if self._folder is None:
                self._folder = self._stack.enter_context(temporary_folder(FOLDER))
                atexit.register(self._stack.close)
            self._number += 1
            own = self._folder / str(self._number)
        own.mkdir()
        copy: Path = own / path.name
        path.fetch(copy)
        with self._lock:
            self._copies[key] = copy
            while len(self._copies) > MOST_COPIES:
                _, old = self._copies.popitem(last=False)
                old.unlink(missing_ok=True)
        return copy


class _Ranges(BufferedIOBase):
    """An object as a file that is read: a request for each range that was not read ahead.

    A read that goes on where the last one ended asks for more than is wanted, each time twice as
    much; any other asks for `BLOCK` bytes or what is wanted.
    """

    def __init__(self, path: ObjectPath, found: ObjectInfo) -> None:
        self._path, self._found = path, found
        self._at, self._begin, self._block = 0, 0, b""
        self._ahead = BLOCK

    @property
    def name(self) -> str:
        return str(self._path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._found.size}[whence]
        if origin + offset < 0:
            raise OSError(errno.EINVAL, "there is nothing before the beginning of a file")
        self._at = origin + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._found.size - self._at)
        n = left if size is None or size < 0 else min(size, left)
        parts = []
        while n:
            part = self._held(n) or self._get(n)
            parts.append(part)
            self._at += len(part)
            n -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    read1 = read

    def peek(self, size: int = 0) -> bytes:
        n = min(max(size, 1), self._found.size - self._at)
        if n <= 0:
            return b""
        return self._held(BLOCK) or self._get(n)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        content = self.read(len(view))
        view[: len(content)] = content
        return len(content)

    def _held(self, size: int) -> bytes:
        """Give at most so many bytes of those that are held, from where it is read."""
        first = self._at - self._begin
        return self._block[first : first + size] if 0 <= first < len(self._block) else b""

    def _get(self, size: int) -> bytes:
        import obstore

        goes_on = self._at == self._begin + len(self._block) and len(self._block) > 0
        self._ahead = min(2 * self._ahead, MOST_AHEAD) if goes_on else BLOCK
        stop = min(self._at + max(size, self._ahead), self._found.size)
        options: Any = {"range": (self._at, stop)}
        if self._found.etag:
            options["if_match"] = self._found.etag
        with told(self._path):
            got = obstore.get(store(self._path.bucket), self._path.key, options=options)
            self._block = bytes(got.bytes())
        if len(self._block) != stop - self._at:
            raise OSError(errno.EIO, "the server gives fewer bytes than the object has")
        self._begin = self._at
        return self._block[:size]


_known = _Known()
_copies = _Copies()
