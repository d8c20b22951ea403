"""The process that runs `ifclite-geom`: one file in, the meshes of all its products out.

It may crash, hang or need too much memory, so it is a process of its own
(`python -m spatialq.io.ifc.ifclite FILE SECONDS`), beside that of IfcOpenShell. It answers with
the frame ``M`` for each mesh and with ``E`` in the end, whose body is where the library has its
origin, see `spatialq.io.ifc.mesh_stream`; one that ends without ``E`` has failed.
"""

import signal
import sys
from pathlib import Path

from spatialq.io.ifc.mesh_stream import IDENTITY, MESH, ORIGIN, private_stdout, send

MEMORY = 2 << 30
MEMORY_PER_BYTE = 64
"""Bytes of address space that it may take, in all and for each byte of the file: four times what
the largest known model needs."""


def limit_memory(file_bytes: int) -> None:
    """Let the process end, rather than the machine swap, when a file needs too much."""
    if sys.platform != "win32":
        import resource

        limit = MEMORY + MEMORY_PER_BYTE * file_bytes
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def main(path: str, seconds: float) -> None:
    """Send the meshes of a file."""
    # Ctrl-C reaches the whole process group: end at once, even inside Rust code.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    out = private_stdout()
    if hasattr(signal, "alarm"):
        signal.alarm(int(seconds) + 1)  # for when the parent is gone
    text = Path(path).read_bytes()
    limit_memory(len(text))
    import ifclite_geom

    found = ifclite_geom.geometry_data_buffers(text)
    elements = found["elements"]
    while elements:
        step_id, element = elements.popitem()
        vertices, faces = element["vertices"], element["faces"]
        send(out, b"M", MESH.pack(step_id, len(vertices), *IDENTITY), vertices, faces)
    send(out, b"E", ORIGIN.pack(*found["rtc_offset"]))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
