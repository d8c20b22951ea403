"""What travels between the driver and its workers: tasks and what became of them, as JSON."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Task:
    """Some work that a worker does alone."""

    name: str
    """Unique in its job; of a task that writes a part, the name of the file."""
    work: str
    """Which work, see `spatialq.cluster.worker.WORK`."""
    data: dict[str, Any]
    """What the work needs, such as files, a core box, a halo and options: values of JSON."""
    folder: str = ""
    """Of the parts; empty if the task writes none."""

    @classmethod
    def read(cls, text: str) -> "Task":
        """Read a task from JSON."""
        return cls(**json.loads(text))

    def text(self) -> str:
        """Write the task as a line of JSON."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Done:
    """What became of a task that was done."""

    name: str
    facts: dict[str, Any]
    """What the work found out: values of JSON."""
    size: int | None = None
    """Bytes of the part that it wrote."""
    digest: str = ""
    """Of the part: BLAKE2b of 16 bytes, in hexadecimal."""
    warnings: list[list[str]] = field(default_factory=list)
    """Category and text of each."""

    @classmethod
    def read(cls, text: str) -> "Done":
        """Read it from JSON."""
        return cls(**json.loads(text))

    def text(self) -> str:
        """Write it as a line of JSON."""
        return json.dumps(asdict(self))
