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
import secrets
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from hashlib import blake2b
from io import BufferedIOBase, TextIOWrapper
from pathlib import Path
from typing import IO, Any

from spatialq.runtime import forks
from spatialq.runtime.extras import missing, require
from spatialq.runtime.temporary import temporary_folder

SCHEME = "s3:"
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
        state = blake2b(f"{self} {self.found().etag}".encode(), digest_size=16).hexdigest()
        copy = _copies.get(self, f"{state}/{self.name}")
        _copies.trim(MOST_COPIES)
        return str(copy)

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
        asked, known = _known.get(url, (0.0, None))
        if known is not None and time.monotonic() - asked < FRESH:
            return known
        try:
            with system_errors(self):
                found = ObjectInfo.of(store(self.bucket).head(self.key))
        except FileNotFoundError:
            # the answer has no text that tells a missing bucket from a missing object
            next(self.objects(), None)
            raise
        _remember(url, found)
        return found

    def objects(self) -> Iterator[ObjectInfo]:
        """List all objects in the folder of this name, and in those in it, in order of names.

        Raises
        ------
        OSError
            If the server does not say.
        """
        with system_errors(self):
            for some in store(self.bucket).list(self.key or None, chunk_size=1000):
                yield from map(ObjectInfo.of, some)

    def entries(self) -> tuple[list[ObjectInfo], list[str]]:
        """List the objects and the names of the folders in the folder of this name.

        Raises
        ------
        OSError
            If the server does not say.
        """
        with system_errors(self):
            listed = store(self.bucket).list_with_delimiter(self.key or None)
        names = [str(each).rstrip("/").rpartition("/")[2] for each in listed["common_prefixes"]]
        return [ObjectInfo.of(each) for each in listed["objects"]], names

    def other(self, found: ObjectInfo) -> "ObjectPath":
        """Name another object of the bucket, about which the server will not be asked soon."""
        path = ObjectPath(SCHEME, self.bucket, found.key)
        _remember(str(path), found)
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
        etag = self.found().etag
        options: Any = {"if_match": etag} if etag else {}
        with system_errors(self):
            got = store(self.bucket).get(self.key, options=options)
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
        with system_errors(self):
            return bytes(store(self.bucket).get(self.key).bytes())

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
        mode: Any = {"e_tag": before} if before is not None else "create" if new else "overwrite"
        _known.pop(str(self), None)
        with system_errors(self):
            return str(store(self.bucket).put(self.key, content, mode=mode)["e_tag"])

    def unlink(self, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002 (as Path has it)
        """Remove the object; the server does not say whether there was one.

        Raises
        ------
        OSError
            If the server does not.
        """
        del missing_ok
        with system_errors(self):
            store(self.bucket).delete(self.key)

    def remove_all(self) -> None:
        """Remove all objects in the folder of this name.

        Raises
        ------
        OSError
            If the server does not.
        """
        keys = [found.key for found in self.objects()]
        with system_errors(self):
            store(self.bucket).delete(keys)

    def mkdir(self, *_: object, **__: object) -> None:
        """Do nothing: there are no folders but by their objects."""


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
    FileError
        If the package that it needs is not installed.
    ValueError
        As `as_path`, with the name of the caller.
    """
    try:
        path = as_path(given)
    except ValueError as error:
        message = f"{caller}: {error}"
        raise ValueError(message) from None
    assert isinstance(path, ObjectPath)
    require("s3", caller, path)
    return path


@cache
def store(bucket: str) -> Any:
    """Give the client of a bucket, which is the same for all threads.

    Raises
    ------
    OSError
        If the package that it needs is not installed.
    """
    if reason := missing("s3"):
        raise OSError(errno.ENOSYS, reason)
    from obstore.store import S3Store

    endpoint, region = _place()
    # a server of one's own, such as MinIO, is often without TLS
    client: Any = {"allow_http": endpoint.startswith("http://"), "connect_timeout": "10s"}
    given: Any = {"endpoint": endpoint} if endpoint else {}
    retries: Any = {"max_retries": TRIES, "retry_timeout": timedelta(seconds=PATIENCE)}
    return S3Store(bucket, region=region, client_options=client, retry_config=retries, **given)


def is_named() -> bool:
    """Whether the environment says anything of object storage, and its packages are installed.

    Certificates, which companies and hosts name for all programs, say nothing of it.
    """
    if not any(name.startswith("AWS_") and name != "AWS_CA_BUNDLE" for name in os.environ):
        return False
    return not missing("s3")


def _place() -> tuple[str, str]:
    """Read the endpoint, empty for that of AWS, and the region."""
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    endpoint = next((os.environ[name] for name in names if os.environ.get(name)), "")
    regions = (os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION"))
    return endpoint.rstrip("/"), next((each for each in regions if each), "us-east-1")


@contextmanager
def system_errors(path: ObjectPath) -> Iterator[None]:
    """Raise errors of the library as errors of the system, each with a sentence of ours.

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


_known: dict[str, tuple[float, ObjectInfo]] = {}
"""When the server was last asked what an object is, and what it said."""


def _remember(url: str, found: ObjectInfo) -> None:
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    _known[url] = time.monotonic(), found


class Copies:
    """Temporary copies of whole objects, of which those that were not used for longest may go.

    Parameters
    ----------
    prefix : str
        How the name of their folder begins.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix, self._lock, self._stack = prefix, forks.lock(), ExitStack()
        self._copies: OrderedDict[Path, ObjectInfo] = OrderedDict()
        self._folder: Path | None = None
        atexit.register(self.close)

    @property
    def folder(self) -> Path:
        """Where they are."""
        with self._lock:
            if self._folder is None:
                self._folder = self._stack.enter_context(temporary_folder(self._prefix))
            return self._folder

    def get(self, path: ObjectPath, name: str) -> Path:
        """Give the copy of an object, under a name in the folder.

        Raises
        ------
        OSError
            If it cannot be read or written.
        """
        copy, found = self.folder / name, path.found()
        with self._lock:
            if self._copies.get(copy) == found and copy.exists():
                self._copies.move_to_end(copy)
                return copy
        copy.parent.mkdir(parents=True, exist_ok=True)
        partial = self.folder / secrets.token_hex(8)  # another thread may want the same one
        path.fetch(partial)
        partial.replace(copy)
        with self._lock:
            self._copies[copy] = found
            self._copies.move_to_end(copy)
        return copy

    def trim(self, most: float, weight: Callable[[ObjectInfo], int] = lambda _: 1) -> None:
        """Remove copies until all others together have at most a weight, by default a number."""
        with self._lock:
            left = sum(map(weight, self._copies.values()))
            while self._copies and left > most:
                copy, found = self._copies.popitem(last=False)
                copy.unlink(missing_ok=True)
                left -= weight(found)

    def close(self) -> None:
        """Remove all copies, and their folder until there are new ones."""
        with self._lock:
            self._copies.clear()
            self._folder = None
            self._stack.close()


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

    def _held(self, size: int) -> bytes:
        """Give at most so many bytes of those that are held, from where it is read."""
        first = self._at - self._begin
        return self._block[first : first + size] if 0 <= first < len(self._block) else b""

    def _get(self, size: int) -> bytes:
        goes_on = self._at == self._begin + len(self._block) and len(self._block) > 0
        self._ahead = min(2 * self._ahead, MOST_AHEAD) if goes_on else BLOCK
        stop = min(self._at + max(size, self._ahead), self._found.size)
        options: Any = {"range": (self._at, stop)}
        if self._found.etag:
            options["if_match"] = self._found.etag
        with system_errors(self._path):
            got = store(self._path.bucket).get(self._path.key, options=options)
            self._block = bytes(got.bytes())
        if len(self._block) != stop - self._at:
            raise OSError(errno.EIO, "the server gives fewer bytes than the object has")
        self._begin = self._at
        return self._block[:size]


_copies = Copies(FOLDER)
