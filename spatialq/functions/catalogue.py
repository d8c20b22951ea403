"""All spatial functions by the names that SQL has for them: each folder of `udfs` declares some."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spatialq.functions.declaration import (
    Declaration,
    Device,
    Inputs,
    Output,
    Parameter,
    parameters_of,
)

if TYPE_CHECKING:
    from spatialq.functions.sql_function import SqlFunction
    from spatialq.functions.stages import PointWork


@dataclass(frozen=True)
class Function:
    """One output of a declaration: a function as SQL, the planner and callers see it."""

    folder: str
    declaration: Declaration
    output: Output

    @property
    def name(self) -> str:
        """Its name everywhere."""
        return self.output.name

    @property
    def inputs(self) -> Inputs:
        """What it is a function of."""
        return self.declaration.inputs

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its named arguments."""
        return parameters_of(self.declaration.parameters)

    @property
    def is_one_of_several(self) -> bool:
        """Whether its kernel has other outputs, too."""
        return len(self.declaration.outputs) > 1

    def choose(self, given: Mapping[str, Any], caller: str = "") -> Any:
        """Make the parameters of a call of named arguments.

        Parameters
        ----------
        given : mapping
        caller : str
            What errors begin with, where that is not this function, but a composition.

        Raises
        ------
        ValueError
            If there is no such parameter, or a value is of another type or out of range.
        """
        caller = caller or self.name
        known = {each.name: each for each in self.parameters}
        if unknown := sorted(set(given) - set(known)):
            names = ", ".join(sorted(known))
            message = f"{caller}: no option {unknown[0]!r}; there is {names}"
            raise ValueError(message)
        chosen = {}
        for name, value in given.items():
            try:
                chosen[name] = known[name].convert(value)
            except TypeError as error:
                message = f"{caller}: {name} must be {error}, got {value!r}"
                raise ValueError(message) from None
        return self.declaration.parameters(**chosen, caller=caller)

    def no_rows(self) -> dict[str, Any]:
        """Give the columns of a result without a row, but for lists."""
        import numpy as np

        from spatialq.data.columns import NUMPY_TYPES

        known = NUMPY_TYPES | {"GEOMETRY": np.object_}
        kinds = self.output.columns.items()
        return {name: np.empty(0, known[kind]) for name, kind in kinds if kind in known}

    def has_kernel(self, device: Device) -> bool:
        """Whether there is a kernel for this device; does not import it."""
        return _is_there(f"spatialq.udfs.{self.folder}.{device}")

    def kernel(self, device: Device) -> Callable[..., dict[str, Any]]:
        """Give the kernel for a device, whose result is the columns of this function."""
        run = self.kernel_of_all(device)
        if not self.is_one_of_several:
            return run

        def only(*arguments: Any, **named: Any) -> dict[str, Any]:
            found: dict[str, Any] = run(*arguments, **named, outputs=(self.name,))[self.name]
            return found

        return only

    def kernel_of_all(self, device: Device) -> Callable[..., dict[str, Any]]:
        """Import the kernel for a device: the device is the module's name.

        A kernel that has several outputs gets the names of those wanted as `outputs`, and gives a
        dict of their columns.
        """
        module = importlib.import_module(f"spatialq.udfs.{self.folder}.{device}")
        run: Callable[..., dict[str, Any]] = module.run
        return run

    def program(self) -> "Callable[[PointWork[Any]], None] | None":
        """Import how a call divides, the function of its name in `stages.py`; None without one."""
        name = f"spatialq.udfs.{self.folder}.stages"
        return getattr(importlib.import_module(name), self.name, None) if _is_there(name) else None


@cache
def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


@cache
def folders() -> Mapping[str, ModuleType]:
    """Import the declarations: the modules of `spatialq.udfs`, by name."""
    import spatialq.udfs

    names = sorted(info.name for info in pkgutil.iter_modules(spatialq.udfs.__path__))
    return {name: importlib.import_module(f"spatialq.udfs.{name}") for name in names}


@cache
def catalogue() -> Mapping[str, Function]:
    """All functions that have kernels, by name."""
    return _declared("DECLARATION")


@cache
def divisible() -> Mapping[str, Function]:
    """All functions that may have stages, by name: also compositions that declare themselves."""
    return {**catalogue(), **_declared("COMPOSITION")}


def _declared(name: str) -> Mapping[str, Function]:
    return {
        output.name: Function(folder, getattr(module, name), output)
        for folder, module in folders().items()
        if hasattr(module, name)
        for output in getattr(module, name).outputs
    }


def helpers() -> "tuple[SqlFunction, ...]":
    """All SQL functions that the handwritten macros of a folder call."""
    return tuple(f for module in folders().values() for f in getattr(module, "SQL_FUNCTIONS", ()))


def find(caller: str, name: str) -> Function:
    """Look up a spatial function; a ValueError names the nearest ones."""
    known = catalogue()
    if name in known:
        return known[name]
    near = get_close_matches(name, known) or sorted(known)
    message = f"{caller}: no spatial function {name!r}; there is {', '.join(near)}"
    raise ValueError(message)
