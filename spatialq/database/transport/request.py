"""What a query asks a kernel for: one text that travels with the rows."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from spatialq.functions.catalogue import Function

Road = Literal["native", "lists"]
"""How rows get from DuckDB to a kernel and back: by the extension, or as lists of DuckDB."""

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

    @classmethod
    def new(cls, text: str, **source: Any) -> "Request":
        """Make the request of a call, with a token of its own, from the options as JSON."""
        return cls(json.loads(text), next(_tokens), source)

    @classmethod
    def of(cls, text: str) -> "Request":
        """Read a request; a text without a token has only options."""
        known = json.loads(text)
        return cls(**known) if "token" in known else cls(known)

    @property
    def text(self) -> str:
        """The request as JSON, which `of` reads."""
        known = {"options": self.options, "token": self.token, "source": self.source}
        return json.dumps(known)

    def choose(self, function: Function) -> tuple[Any, str]:
        """Make the parameters of the call, and the requested device.

        Raises
        ------
        ValueError
            As `Function.choose`; also if a parameter is NULL that must have a value.
        """
        named = {name: value for name, value in self.options.items() if name != "device"}
        for each in function.parameters:
            if not each.is_optional and named.get(each.name, 0) is None:
                message = f"{function.name}: {each.name} must not be NULL"
                raise ValueError(message)
        return function.choose(named), self.options["device"]
