"""What a query may take, and how it is refused."""

from dataclasses import dataclass
from typing import Any

from spatialq.errors import SpatialqError


class QueryRefusedError(SpatialqError, ValueError):
    """A query that the box does not run, or that went beyond its limits."""


@dataclass(frozen=True)
class Limits:
    """What a query may take.

    Parameters
    ----------
    seconds : float
    memory : int
        Bytes of DuckDB, and as many again of what it does not count.
    rows : int
        Rows of the answer.
    """

    seconds: float = 10.0
    memory: int = 1 << 30
    rows: int = 1000

    def said(self) -> dict[str, Any]:
        """Say it as the page takes it."""
        return {"seconds": self.seconds, "memory": f"{self.memory >> 20} MiB", "rows": self.rows}

    @property
    def too_long(self) -> QueryRefusedError:
        """The refusal of a query that takes too long."""
        return _refused(f"took longer than {self.seconds:g} s (--seconds)")

    @property
    def too_much(self) -> QueryRefusedError:
        """The refusal of a query that takes too much memory."""
        return _refused(f"took more than {self.memory >> 20} MiB of memory (its share of --memory)")

    def lost(self, ending: str) -> QueryRefusedError:
        """Refuse a query that took its process with it; ``ending`` says how that ended."""
        return _refused(
            f"ended its process, which {ending} (it may take {self.memory >> 20} MiB of memory, "
            "its share of --memory)"
        )


def _refused(what: str) -> QueryRefusedError:
    message = f"view: the query {what}; ask for fewer rows, or a simpler question"
    return QueryRefusedError(message)
