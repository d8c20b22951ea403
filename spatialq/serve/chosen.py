"""What is selected in the page of a notebook, as the page and Python tell each other."""

from dataclasses import dataclass
from typing import Any


@dataclass
class Chosen:
    """What is selected.

    Attributes
    ----------
    said : dict
        By the page: `kind` 'point', 'element' or 'plane', `cloud` of points, and `ids` or the
        `text` of the query that selects them; empty where nothing is selected.
    number : int
        Of what Python selected last; the page, which asks again and again, takes each once.
    result : dict, optional
        What that is, as the answer to a query.
    """

    said: dict[str, Any]
    number: int = 0
    result: dict[str, Any] | None = None

    def show(self, result: dict[str, Any] | None) -> None:
        """Have the page select the rows of a result."""
        self.result, self.number = result, self.number + 1
