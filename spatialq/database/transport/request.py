"""What a query asks a kernel for: one text that travels with the rows."""

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any, Literal

from spatialq.data.frame import Frame
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import CoordinateParameters, Parameters
from spatialq.functions.sql_text import literal
from spatialq.io.crs import from_argument, require_one_plane
from spatialq.planner.plan import require_device
from spatialq.runtime import budget

Transport = Literal["native", "lists"]
"""How rows get from DuckDB to a kernel and back: by the extension, or as lists of DuckDB."""

OF_CALLS = ("device", "memory")
"""Options that are no parameters of a function."""
SAME = 1e-6
"""Values that elements state may differ by this much: files round differently."""

_tokens = count(1)


@dataclass(frozen=True)
class Request:
    """One call of a function in SQL."""

    options: Mapping[str, Any]
    """The parameters that were given, and the device, unchecked."""
    token: int = 0
    """Names the call in the process; 0 for a call of each group."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """What else the transport needs to know, such as the files to read."""
    _chosen: dict[str, tuple[Parameters, str]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """What `choose` has made, by caller: a call asks for it in several places."""

    @classmethod
    def new(cls, text: str, **source: Any) -> "Request":
        """Make the request of a call, with a token of its own, from the options as JSON."""
        return cls(json.loads(text), next(_tokens), source)

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, text: str) -> "Request":
        """Read a request; a text without a token has only options, and is that of many groups."""
        known = json.loads(text)
        return cls(**known) if "token" in known else cls(known)

    @classmethod
    def of_group(cls, text: str | None) -> "Request":
        """Read the request of a group; an aggregate of no rows has not learnt what it asks for."""
        return cls.of('{"device": "auto"}' if text is None else text)

    @property
    def text(self) -> str:
        """The request as JSON, which `of` reads."""
        known = {"options": self.options, "token": self.token, "source": self.source}
        return json.dumps(known)

    def with_found(self, found: Mapping[str, str]) -> str:
        """Write the expression for the request and what a query finds out beside its `source`.

        Parameters
        ----------
        found : mapping of str to str
            Expressions that give JSON.
        """
        if not found:
            return literal(self.text)
        head = self.text.removesuffix("}}") + (", " if self.source else "")
        fields = " || ', ' || ".join(f"'\"{name}\": ' || {value}" for name, value in found.items())
        return f"{literal(head)} || {fields} || '}}}}'"

    @property
    def frame(self) -> Frame:
        """What is known of the coordinates; nothing of those of a group."""
        return Frame(**self.source.get("frame", {"subject": "the points"}))

    def require_one_crs(
        self, function: Function, other: str, crs: str | None, *, with_heights: bool = False
    ) -> None:
        """Reject another table whose CRS is not that of the points; see `require_one_plane`.

        Raises
        ------
        CrsError
        """
        chosen, _ = self.choose(function)
        assert isinstance(chosen, CoordinateParameters)
        known = self.frame.crs if chosen.crs is None else from_argument(function.name, chosen.crs)
        points = f"points {self.frame.subject} are", known
        require_one_plane(function.name, points, (other, crs), with_heights=with_heights)

    def within_memory(self, caller: str) -> AbstractContextManager[None]:
        """Limit the main memory of what is done in a block for this call.

        Raises
        ------
        ValueError
            If the limit is no size; the sentence begins with `caller`.
        """
        return budget.within(caller, self.options.get("memory"))

    def choose(self, function: Function, caller: str = "") -> tuple[Parameters, str]:
        """Make the parameters of the call, and the requested device; the memory is checked.

        Parameters
        ----------
        function : Function
        caller : str
            What errors begin with, where that is not the function.

        Raises
        ------
        ValueError
            As `Function.choose`; also if a parameter is NULL that must have a value, or if the
            elements state different values for one.
        """
        caller = caller or function.name
        if caller not in self._chosen:
            self._chosen[caller] = self._choose(function, caller)
        return self._chosen[caller]

    def _choose(self, function: Function, caller: str) -> tuple[Parameters, str]:
        named = {name: value for name, value in self.options.items() if name not in OF_CALLS}
        device = self.options["device"]
        if device is None:
            message = f"{caller}: device must not be NULL"
            raise ValueError(message)
        for each in function.parameters:
            if not each.is_optional and named.get(each.name, 0) is None:
                message = f"{caller}: {each.name} must not be NULL"
                raise ValueError(message)
            tables = self.source.get("stated", ())
            stated = sorted({value for table in tables for value in table.get(each.name) or ()})
            if stated and named.get(each.name) is None:
                if max(stated) - min(stated) > SAME:
                    several = " and ".join(f"{value:.6g}" for value in stated)
                    message = (
                        f"{caller}: the elements state different values in their column "
                        f"{each.name}, {several}: give {each.name}"
                    )
                    raise ValueError(message)
                named[each.name] = stated[0]
        require_device(caller, device)
        self.within_memory(caller)
        return function.choose(named, caller), device
