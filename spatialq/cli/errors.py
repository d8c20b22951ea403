"""What the command line says of an error."""

import re


def sentence(error: BaseException) -> str:
    """Say what an error is about, and in which statement of several."""
    places = (f"{place}: " for place in getattr(error, "__notes__", ()))
    return f"{''.join(places)}{plain(error)}"


def plain(error: BaseException) -> str:
    """Take the sentence of spatialq out of the text that DuckDB puts around a function's error.

    DuckDB has no interface for it: the error has no cause, and its one argument is this text.
    """
    text = str(error).strip()
    ours = re.search(r"(?:\w+Error|Invalid|Invalid Input Error): (\w+: .*)", text)
    return ours[1].split(". Detail: Python exception")[0] if ours else text
