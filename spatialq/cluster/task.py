"""What travels between the driver and its workers: tasks and what became of them, as JSON."""

import json
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

CHECK = ', "check": "'
"""Before the digest of a line of a journal."""


PACKAGES = ("spatialq.udfs.", "spatialq.functions.", "spatialq.cluster.")
"""Where the functions and classes are that tasks name."""


@dataclass(frozen=True)
class Task:
    """Some work that a worker does alone."""

    name: str
    """Unique in its stage; of a task that writes a file, the name of that file."""
    work: str
    """The name of a function, see `name_of`, that gets `data` and the path of the file to write, if
    it writes one, and gives facts. Both are values of JSON."""
    data: dict[str, Any]
    """What the work needs, such as files, a core box, a halo and options: values of JSON."""
    stage: str = ""
    """The stage of the job that it is in."""
    root: str = ""
    """The folder of the job, if it writes a file."""
    second: str = ""
    """Stage and name, such as 'roots/r.npz', of another file that it writes for later stages, which
    must not be the name of any other's; see `second_of`."""
    stages: str = ""
    """How the names of those files of earlier stages begin that a worker must fetch, if any."""

    @classmethod
    def read(cls, text: str) -> "Task":
        """Read a task from JSON."""
        return cls(**json.loads(text))

    def text(self) -> str:
        """Write the task as a line of JSON."""
        return json.dumps(vars(self))


@dataclass(frozen=True)
class Done:
    """What became of a task that was done."""

    stage: str
    name: str
    facts: dict[str, Any]
    """What the work found out: values of JSON."""
    size: int | None = None
    """Bytes of the file that it wrote."""
    digest: str = ""
    """Of the file: BLAKE2b of 16 bytes, in hexadecimal."""
    second: list[Any] = field(default_factory=list)
    """`Task.second`, size and digest of the second file, if there is one."""
    warnings: list[list[str]] = field(default_factory=list)
    """Category and text of each."""

    @classmethod
    def read(cls, line: str) -> "Done":
        """Read a line of a journal.

        Raises
        ------
        ValueError
            If it is not as `line` wrote it.
        """
        text, _, check = line.strip().rpartition(CHECK)
        if check != f'{_digest_of(text)}"}}':
            message = "the digest of the line is another one"
            raise ValueError(message)
        return cls(**json.loads(f"{text}}}"))

    def text(self) -> str:
        """Write it as JSON."""
        return json.dumps(vars(self))

    def line(self) -> str:
        """Write it as a line of a journal: JSON, with a digest at its end."""
        text = self.text()[:-1]
        return f'{text}{CHECK}{_digest_of(text)}"}}'


def name_of(thing: Any) -> str:
    """Name a function or a class, so that a worker finds it.

    Raises
    ------
    ValueError
        If it is none at the top of a module.
    """
    name = f"{thing.__module__}:{thing.__qualname__}"
    if "." in thing.__qualname__ or "<" in thing.__qualname__:
        message = f"a task must name what is at the top of a module, got {name!r}"
        raise ValueError(message)
    return name


def named(name: str) -> Any:
    """Give the function or the class of a name.

    Raises
    ------
    ValueError
        If it is none of ours.
    """
    module, _, thing = name.partition(":")
    if not module.startswith(PACKAGES):
        message = f"a task must name what is below {' or '.join(PACKAGES)}, got {name!r}"
        raise ValueError(message)
    return getattr(import_module(module), thing)


def _digest_of(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def second_of(partial: Path) -> Path:
    """Say where a task writes its second file, by where it writes the first."""
    return partial.with_name(f"{partial.name}.second")


def place_of(second: str) -> tuple[str, str]:
    """Give the stage and the name of a second file."""
    stage, _, name = second.partition("/")
    return stage, name
