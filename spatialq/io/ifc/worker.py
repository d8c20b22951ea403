"""The process that runs IfcOpenShell: one file in, frames of bytes out.

IfcOpenShell may crash on a product, hang on it, and print to standard output. None of this may
reach the caller's process, so this module runs as a process of its own
(`python -m spatialq.io.ifc.worker FILE SECONDS`), started by `spatialq.io.ifc.process`.

It reads one JSON command a line from standard input: ``{"describe": true}`` asks for the facts
of the model, ``{"shapes": [step ids]}`` for meshes. It answers with frames, see `FRAME`:

- ``O`` the file is open;
- ``J`` a JSON object: the facts, or an ``error`` after which the worker ends;
- ``M`` a mesh, ``N`` a product that has curves or points only, ``F`` a product that failed.

The products of a command are answered in its order, so the one at work is always the first
without an answer.
"""

import json
import os
import re
import signal
import struct
import sys
from typing import Any, BinaryIO

FRAME = struct.Struct("<cQ")
"""Kind and number of bytes that follow."""

MESH = struct.Struct("<qqq")
"""Step id, bytes of float64 x y z, bytes of int32 vertex indices, three a triangle."""

SETTINGS = {"use-world-coords": True, "weld-vertices": True, "reorient-shells": True}
"""World metres; without the reorientation many shells come out inconsistent."""

SPARE_SECONDS = 30
"""How much longer than its parent a worker waits before it ends itself."""


class Worker:
    """One open IFC file and the stream that its answers go to.

    Parameters
    ----------
    path : str
    seconds : float
        The parent ends a worker that takes longer for one product. A worker whose parent is
        gone ends itself a little later.
    out : binary stream
    """

    def __init__(self, path: str, seconds: float, out: BinaryIO) -> None:
        import ifcopenshell
        import ifcopenshell.geom

        self.out = out
        self.seconds = seconds
        self.take_log = ifcopenshell.get_log
        self.model = ifcopenshell.open(path, format=".ifc")
        self.parse_errors = [line for line in complaints(self.take_log()) if "[error]" in line]
        settings = ifcopenshell.geom.settings()
        for name, value in SETTINGS.items():
            settings.set(name, value)
        # One kernel for all products: as fast as IfcOpenShell's iterator, but it says which
        # product failed, and gives each product exactly once.
        self.kernel = ifcopenshell.geom.kernel(settings, self.model)

    def describe(self) -> None:
        """Answer with the facts of the model."""
        from spatialq.io.ifc.facts import describe

        facts = describe(self.model)
        facts["parse_errors"] = self.parse_errors
        text = json.dumps(facts, ensure_ascii=False)
        # Broken files give strings that are not Unicode: their bad characters become "?".
        send(self.out, b"J", text.encode(errors="replace"))

    def shape(self, step_id: int) -> None:
        """Answer with the mesh of one product, or with the reason why there is none."""
        product = self.model.by_id(step_id)
        if not has_surface(product):
            send(self.out, b"N", json.dumps({"step_id": step_id}).encode())
            return
        if hasattr(signal, "alarm"):
            signal.alarm(int(self.seconds) + SPARE_SECONDS)
        try:
            # The element owns the buffers: keep it until they are sent.
            element = self.kernel.create_shape(product)
            vertices, faces = element.geometry.verts_buffer, element.geometry.faces_buffer
            reason = "IfcOpenShell made a shape without faces"
            if getattr(product, "HasOpenings", None):
                reason += "; perhaps its openings take all of it away"
        except Exception as error:
            vertices = faces = b""
            reason = str(error).strip() or type(error).__name__
        log = self.take_log()
        if faces:
            send(self.out, b"M", MESH.pack(step_id, len(vertices), len(faces)), vertices, faces)
        else:
            failure = {"step_id": step_id, "message": " | ".join([reason, *complaints(log)])}
            send(self.out, b"F", json.dumps(failure).encode())


def send(out: BinaryIO, kind: bytes, *parts: bytes) -> None:
    """Write one frame and flush it: what was sent survives a crash."""
    out.write(FRAME.pack(kind, sum(map(len, parts))))
    for part in parts:
        out.write(part)
    out.flush()


STAMP = re.compile(r"^(\[\w+\] \[\w+\]) \[[^]]*\]")
"""How a line of IfcOpenShell's log begins: severity, code, and the time, which nobody needs."""


def complaints(log: str) -> list[str]:
    """Pick the first lines of IfcOpenShell's log that say what is wrong with a shape."""
    lines = [STAMP.sub(r"\1", line)[:300] for line in log.splitlines() if STAMP.match(line)]
    # GEO031: no surface style. True of many good products, and no reason.
    telling = [line for line in lines if "[notice]" not in line and "[GEO031]" not in line]
    telling.sort(key=lambda line: "[error]" not in line)
    return list(dict.fromkeys(telling))[:3]


CURVES_AND_POINTS = (
    "IfcCurve", "IfcPoint", "IfcSegment", "IfcEdge", "IfcVertex", "IfcPath", "IfcEdgeLoop",
    "IfcVertexLoop", "IfcPlacement", "IfcDirection", "IfcVector", "IfcBoundingBox",
    "IfcAnnotationFillArea", "IfcTextLiteral", "IfcLightSource", "IfcPlanarExtent",
    "IfcStyledItem", "IfcDefinedSymbol", "IfcCartesianPointList",
)  # fmt: skip
"""Classes of items that rightly give no triangle, over all schemas; subclasses count too."""


def has_surface(product: Any) -> bool:
    """Whether a product's representations hold anything that must give triangles."""
    shape = product.Representation
    pending = [
        item
        for representation in (shape.Representations or () if shape else ())
        for item in representation.Items or ()
    ]
    seen = set()
    while pending:
        item = pending.pop()
        if item.id() in seen:
            continue
        seen.add(item.id())
        if item.is_a("IfcMappedItem"):
            pending += item.MappingSource.MappedRepresentation.Items or ()
        elif item.is_a("IfcGeometricSet"):
            pending += item.Elements or ()
        elif not any(map(item.is_a, CURVES_AND_POINTS)):
            return True
    return False


def private_stdout() -> BinaryIO:
    """Take standard output for the frames; what C++ code prints goes nowhere from now on."""
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    return out


def main(path: str, seconds: float) -> None:
    """Open the file, then answer commands until standard input ends."""
    # Ctrl-C reaches the whole process group: end at once, even inside C++ code.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    out = private_stdout()
    try:
        worker = Worker(path, seconds, out)
        send(out, b"O")
        for line in sys.stdin:
            command = json.loads(line)
            if "describe" in command:
                worker.describe()
            for step_id in command.get("shapes", ()):
                worker.shape(step_id)
            if hasattr(signal, "alarm"):
                signal.alarm(0)
    except Exception as error:
        import ifcopenshell

        reason = str(error).strip() or type(error).__name__
        if not isinstance(error, ifcopenshell.SchemaError):
            reason = " | ".join(
                ["IfcOpenShell cannot read it", reason, *complaints(ifcopenshell.get_log())]
            )
        send(out, b"J", json.dumps({"error": reason}).encode())


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
