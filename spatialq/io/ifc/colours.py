"""The colours of the elements of a model: one each, as `ifclite-geom` finds them in its styles.

A process of its own (`python -m spatialq.io.ifc.colours FILE SECONDS`) runs that library, for the
reasons that `spatialq.io.ifc.ifclite` has.
"""

import signal
import struct
import sys
import threading
from pathlib import Path

from spatialq.io.ifc.guard import checked
from spatialq.io.ifc.ifclite import limit_memory
from spatialq.io.ifc.mesh_stream import private_stdout, send
from spatialq.io.ifc.process import Process

SECONDS = 60.0
BYTES_PER_SECOND = 1e6
COLOUR = struct.Struct("<q4d")
"""Step id; red, green, blue and opacity from 0 to 1."""

Colour = tuple[float, float, float, float]


def read_colours(path: Path) -> dict[int, Colour]:
    """Read the colours of a file that was read before; of none where the library fails.

    Parameters
    ----------
    path : Path

    Returns
    -------
    dict of int to (red, green, blue, opacity)
        sRGB from 0 to 1, by step id; elements without a style are missing, or have a colour that
        the library chooses by their class.
    """
    with checked(path) as step:
        limit = SECONDS + step.path.stat().st_size / BYTES_PER_SECOND
        arguments = [sys.executable, "-P", "-m", __name__, str(step.path), str(limit)]
        process = Process(arguments, limit)
        timer = threading.Timer(limit, process.popen.kill)
        timer.start()
        try:
            answer = process.answer()
        finally:
            timer.cancel()
            process.close()
    if answer is None:
        return {}
    return {each[0]: (each[1], each[2], each[3], each[4]) for each in COLOUR.iter_unpack(answer[1])}


def main(path: str, seconds: float) -> None:
    """Send the colours of a file."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches the whole process group
    out = private_stdout()
    if hasattr(signal, "alarm"):
        signal.alarm(int(seconds) + 1)  # for when the parent is gone
    text = Path(path).read_bytes()
    limit_memory(len(text))
    import ifclite_geom

    elements = ifclite_geom.geometry_data_buffers(text)["elements"]
    send(out, b"C", *(COLOUR.pack(number, *each["color"]) for number, each in elements.items()))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
