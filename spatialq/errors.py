"""The errors that a caller may want to catch.

Each is also the built-in error that a Python programmer would expect. A wrong argument of a
function is a plain `ValueError` or `TypeError`.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class SpatialqError(Exception):
    """Base of all errors of spatialq."""


class FileError(SpatialqError, ValueError):
    """A file cannot be read: the message names the reader, the file and the reason."""

    parts: tuple[str, object, str] | None = None
    """Reader, file, reason."""

    @classmethod
    def of(cls, reader: str, path: object, reason: str) -> "FileError":
        """Build the one sentence: reader, file, reason."""
        error = cls(f"{reader}: '{path}': {reason}")
        error.parts = reader, path, reason
        return error


@contextmanager
def files_read_by(caller: str) -> Iterator[None]:
    """Let errors of readers, such as `read_las`, begin with the function that the user called.

    Raises
    ------
    FileError
    """
    try:
        yield
    except FileError as error:
        reader, path, reason = error.parts or ("", "", "")
        if not reader.startswith("read_"):
            raise
        raise FileError.of(caller, path, reason) from error


class QueryError(SpatialqError, ValueError):
    """A query cannot be: the message names the method, the argument and what would be right."""


class CrsError(SpatialqError, ValueError):
    """Data of different coordinate reference systems would be mixed."""


class DeviceError(SpatialqError, RuntimeError):
    """The device that was asked for is not there."""


class JobError(SpatialqError, RuntimeError):
    """A job of tiles cannot go on in its folder, or its workers ended."""


class FileWarning(UserWarning):
    """A file was read, but something about it is wrong or was repaired."""


class CrsWarning(UserWarning):
    """The unit of coordinates was assumed, or heights were converted, or x and y are degrees.

    Also that a CRS cannot be written as other programs read it.
    """


class StrayPointsWarning(UserWarning):
    """A few points that are far from all others were left out."""


class SparsePointsWarning(UserWarning):
    """A cloud has too few points for what is looked for in it."""


class PlacementWarning(UserWarning):
    """A scan does not lie where the elements are that it is compared with."""


class ScriptError(SpatialqError, ValueError):
    """A QL4BIM script is wrong: the message shows the place.

    Parameters
    ----------
    message : str
        The script, line and column, the reason, and the line with carets under the place.
    line, column : int
        From 1.
    reason : str
        One sentence.
    """

    def __init__(self, message: str, line: int, column: int, reason: str) -> None:
        super().__init__(message)
        self.line, self.column, self.reason = line, column, reason

    def __reduce__(self) -> tuple[type["ScriptError"], tuple[str, int, int, str]]:
        return type(self), (str(self), self.line, self.column, self.reason)
