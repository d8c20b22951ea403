"""The process that runs IfcOpenShell: one file in, frames of bytes out.

IfcOpenShell may crash on a product, hang on it, and print to standard output. None of this may
reach the caller's process, so this module runs as a process of its own
(`python -m spatialq.io.ifc.worker FILE SECONDS`), started by `spatialq.io.ifc.process`.

It reads one JSON command a line from standard input:

- ``{"describe": {"shapes": bool}}`` asks for the facts of the model, and for what is needed to have
  its shapes made;
- ``{"shapes": [step ids]}`` for meshes. They are answered in this order, so the product at work is
  always the first without an answer;
- ``{"copies": [step ids]}`` for those of products that share mapped geometry, which is shaped once.
  Whatever is without an answer in the end, is to be asked for singly.

It answers with frames, see `spatialq.io.ifc.mesh_stream`:

- ``O`` the file is open;
- ``J`` a JSON object: the facts, or an ``error`` after which the worker ends;
- ``M`` a mesh, ``F`` a product that failed, ``E`` the end of a command ``copies``.
"""

import gc
import json
import re
import signal
import sys
from typing import Any, BinaryIO

from spatialq.io.ifc.mesh_stream import IDENTITY, MESH, private_stdout, send
from spatialq.io.ifc.representations import Representations

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
        # One kernel for all products: as fast as IfcOpenShell's iterator, but it says which
        # product failed, and gives each product exactly once.
        self.kernel = ifcopenshell.geom.kernel(geometry_settings(SETTINGS), self.model)

    def describe(self, *, shapes: bool) -> None:
        """Answer with the facts of the model and, if asked, the kind of shape of each product."""
        from spatialq.io.ifc.facts import describe

        facts = describe(self.model)
        facts["parse_errors"] = self.parse_errors
        if shapes:
            representations = Representations(facts["length_unit_metres"] or 1.0)
            step_ids = facts["tables"]["objects"]["step_id"]
            products = [self.model.by_id(step_ids[row]) for row in facts["products"]]
            facts["kinds"] = [representations.kind(product) for product in products]
            facts["places"] = [representations.place(product) for product in products]
            facts["openings"] = [representations.openings(product) for product in products]
            facts["sources"] = [representations.source(product) for product in products]
        text = json.dumps(facts, ensure_ascii=False)
        # Broken files give strings that are not Unicode: their bad characters become "?".
        send(self.out, b"J", text.encode(errors="replace"))

    def shape(self, step_id: int) -> None:
        """Answer with the mesh of one product, or with the reason why there is none."""
        product = self.model.by_id(step_id)
        self.alarm()
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
            send(self.out, b"M", MESH.pack(step_id, len(vertices), *IDENTITY), vertices, faces)
        else:
            failure = {"step_id": step_id, "message": " | ".join([reason, *complaints(log)])}
            send(self.out, b"F", json.dumps(failure).encode())

    def shape_copies(self, step_ids: list[int]) -> None:
        """Answer with the meshes of products, as far as IfcOpenShell's iterator gives them."""
        import ifcopenshell.geom

        products = [self.model.by_id(step_id) for step_id in step_ids]
        self.alarm()
        # In local coordinates copies are equal, and the iterator keeps the first one's.
        local = geometry_settings({**SETTINGS, "use-world-coords": False})
        shapes = ifcopenshell.geom.iterator(local, self.model, 1, include=products)
        waiting = set(step_ids)  # it may give a product twice
        for element in shapes:
            vertices, faces = element.geometry.verts_buffer, element.geometry.faces_buffer
            columns = element.transformation.matrix
            matrix = [columns[4 * column + row] for row in range(4) for column in range(4)]
            if faces and element.id in waiting and is_no_mirror(matrix):
                waiting.remove(element.id)
                send(self.out, b"M", MESH.pack(element.id, len(vertices), *matrix), vertices, faces)
                self.alarm()
        self.take_log()
        send(self.out, b"E")

    def alarm(self) -> None:
        """End the process if nothing happens from now on and the parent does not notice."""
        if hasattr(signal, "alarm"):
            signal.alarm(int(self.seconds) + SPARE_SECONDS)


def geometry_settings(values: dict[str, Any]) -> Any:
    """Give values as IfcOpenShell's settings."""
    import ifcopenshell.geom

    settings = ifcopenshell.geom.settings()
    for name, value in values.items():
        settings.set(name, value)
    return settings


def is_no_mirror(matrix: list[float]) -> bool:
    """Whether a matrix, by rows, keeps left and right, and so the outside of faces."""
    a, b, c, _, d, e, f, _, g, h, i, *_ = matrix
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) > 0


STAMP = re.compile(r"^(\[\w+\] \[\w+\]) \[[^]]*\]")
"""How a line of IfcOpenShell's log begins: severity, code, and the time, which nobody needs."""


def complaints(log: str) -> list[str]:
    """Pick the first lines of IfcOpenShell's log that say what is wrong with a shape."""
    lines = [STAMP.sub(r"\1", line)[:300] for line in log.splitlines() if STAMP.match(line)]
    # GEO031: no surface style. True of many good products, and no reason.
    telling = [line for line in lines if "[notice]" not in line and "[GEO031]" not in line]
    telling.sort(key=lambda line: "[error]" not in line)
    return list(dict.fromkeys(telling))[:3]


def main(path: str, seconds: float) -> None:
    """Open the file, then answer commands until standard input ends."""
    # Ctrl-C reaches the whole process group: end at once, even inside C++ code.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The facts are many small objects without cycles; collecting garbage takes a third of the time.
    gc.disable()
    out = private_stdout()
    try:
        worker = Worker(path, seconds, out)
        send(out, b"O")
        for line in sys.stdin:
            command = json.loads(line)
            if "describe" in command:
                worker.describe(**command["describe"])
            for step_id in command.get("shapes", ()):
                worker.shape(step_id)
            if "copies" in command:
                worker.shape_copies(command["copies"])
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
