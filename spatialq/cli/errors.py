"""What the command line says of an error."""

import re
from traceback import walk_tb


def sentence(error: BaseException) -> str:
    """Say what an error is about, and in which statement of several."""
    if isinstance(error, OSError) and error.strerror:
        return f"{_written(error)}: {error.strerror}"
    places = (f"{place}: " for place in getattr(error, "__notes__", ()))
    return f"{''.join(places)}{plain(error)}"


def plain(error: BaseException) -> str:
    """Take the sentence of spatialq out of the text that DuckDB puts around a function's error.

    DuckDB has no interface for it: the error has no cause, and its one argument is this text.
    """
    text = str(error).strip()
    ours = re.search(r"(?:\w+Error|Invalid|Invalid Input Error): (\w+: .*)", text)
    return ours[1].split(". Detail: Python exception")[0] if ours else text


def _written(error: OSError) -> str:
    """Name the file that an error of the system is about; it has no name for standard output."""
    if error.filename is not None:
        return f"'{error.filename}'"
    modules = (frame.f_globals["__name__"] for frame, _ in walk_tb(error.__traceback__))
    *_, ours = (name for name in ("", *modules) if name.startswith("spatialq") or not name)
    is_printing = ours.startswith("spatialq.cli")  # all that its modules write themselves
    return f"{'standard output' if is_printing else 'a file'} cannot be written"
