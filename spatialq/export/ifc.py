"""Writes a part of an IFC file, in a process of its own; see `spatialq.export.ifc_part`."""

import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spatialq.errors import FileError, FileWarning
from spatialq.export.atomic import require_outputs, whole
from spatialq.io.ifc.guard import StepFile, checked
from spatialq.io.ifc.process import MAX_SECONDS, ending, environment
from spatialq.runtime.extras import require

EXPORTER = "export_ifc"
ENDINGS = (".ifc", ".ifczip")
SECONDS = 600.0
"""How long the process may take: as long as parsing may in `spatialq.io.ifc.model`."""

SHOWN = 3
"""GlobalIds that a message shows."""


def write_part(
    source: Path, global_ids: Sequence[str], target: Path, *, seconds: float = SECONDS
) -> int:
    """Write the part of an IFC file that belongs to some of its objects.

    Parameters
    ----------
    source : Path
        An `.ifc` or `.ifczip` file.
    global_ids : sequence of str
        Of elements, spatial elements, groups, types or other objects. None give the project and
        the roots of its spatial structure.
    target : Path
        An `.ifc` or `.ifczip` file, which appears when it is complete.
    seconds : float, > 0, <= 1,000,000
        How long the process that writes it may take.

    Returns
    -------
    int
        How many objects have these GlobalIds; more are in the part.

    Raises
    ------
    FileError
        If the source cannot be read, a GlobalId is not of an object in it, the process takes
        longer than `seconds` or crashes, or the target cannot be written or is the source.
    ValueError
        If the target has another ending, or `seconds` is out of range.

    Warns
    -----
    FileWarning
        If a GlobalId names several objects, or entities of the source could not be parsed.
    """
    if not 0 < seconds <= MAX_SECONDS:
        message = f"{EXPORTER}: seconds must be > 0 and <= {MAX_SECONDS:,}, got {seconds}"
        raise ValueError(message)
    require_outputs(EXPORTER, [source], [target], ENDINGS)
    wanted = sorted(set(global_ids))
    require("ifc", EXPORTER, source)
    with checked(source) as step, whole(target) as partial:
        answer = ask(step.path, wanted, partial, seconds)
        if "unwritten" in answer:
            raise FileError.of(EXPORTER, target, f"cannot be written: {answer['unwritten']}")
        if "error" in answer:
            raise FileError.of(EXPORTER, source, answer["error"])
        if missing := answer["missing"]:
            reason = (
                f"{len(missing):,} of {len(wanted):,} GlobalIds are not of objects in it, such as "
                f"{some(missing)}"
            )
            raise FileError.of(EXPORTER, source, reason)
    for note in notes(step, answer):
        warnings.warn(f"{EXPORTER}: '{source}': {note}", FileWarning, stacklevel=5)
    return int(answer["objects"])


def command(source: Path, target: Path, seconds: float) -> list[str]:
    """Give the command line of the process."""
    arguments = [str(source), str(target), str(seconds)]
    return [sys.executable, "-P", "-m", "spatialq.export.ifc_part", *arguments]


def ask(source: Path, global_ids: list[str], target: Path, seconds: float) -> dict[str, Any]:
    """Have a process write the part, and give its answer or, as ``error``, how it ended."""
    with subprocess.Popen(
        command(source, target, seconds),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        try:
            answer, _ = process.communicate(json.dumps(global_ids).encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            return {"error": f"IfcOpenShell took longer than {seconds:g} s to take a part of it"}
        finally:
            process.kill()
    if not answer:
        return {"error": f"IfcOpenShell {ending(process.returncode)} while it took a part of it"}
    found: dict[str, Any] = json.loads(answer)
    return found


def notes(step: StepFile, answer: dict[str, Any]) -> list[str]:
    """Say what is odd about a part that was written."""
    found = list(step.warnings)
    if answer["entities"] < step.entities:
        found.append(
            f"only {answer['entities']:,} of {step.entities:,} entities could be parsed: the "
            "others are not in the part"
        )
    if repeated := answer["repeated"]:
        found.append(
            f"{len(repeated):,} GlobalIds are of several objects, such as {some(repeated)}: all of "
            "these are in the part"
        )
    return found


def some(global_ids: list[str]) -> str:
    """Quote the first GlobalIds."""
    return ", ".join(f"'{each}'" for each in global_ids[:SHOWN])
