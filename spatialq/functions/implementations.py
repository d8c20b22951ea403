"""What is called by a text, and imported only then.

Imports point downwards. What calls something of a layer above names it, and
`spatialq/__init__.py`, which is above all layers, registers what that is.
"""

from importlib import import_module
from typing import Any

registered: dict[str, str] = {}
"""``"module:attribute"`` of a layer above for each name."""


def call(name: str, *arguments: Any, **named: Any) -> Any:
    """Import what is registered under a name, or is ``"module:attribute"`` itself, and call it."""
    module, _, attribute = registered.get(name, name).partition(":")
    return getattr(import_module(module), attribute)(*arguments, **named)
