"""Where points of LAZ files are decoded for a kernel on a GPU: there, or on the CPU."""

from collections.abc import Sequence

from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Parameters, PointsInput, Size
from spatialq.io.las.on_gpu import bytes_per_point, compressed_bytes, why_not
from spatialq.io.las.source import LasSource
from spatialq.io.source import PointSource
from spatialq.planner import devices, process
from spatialq.planner.plan import kind_of, number_of
from spatialq.runtime.threads import n_threads

START = 0.5
"""Seconds to start a GPU that the process does not use yet."""
PER_POINT = {True: 10e-6, False: 33e-6}
"""Seconds of a GPU per point of the largest chunk, of formats with and without layers."""
GPU_RATE = {True: 700e6, False: 260e6}
CPU_RATE = {True: 2.4e6, False: 1.9e6}
"""Points per second, of a GPU with many chunks and of a thread of the CPU.

Medians of benchmarks/results/laz_gpu.json, on an H200.
"""


def gpu_for(
    function: Function,
    clouds: Sequence[PointSource],
    attributes: Sequence[str],
    options: Parameters,
    requested: str,
) -> int | None:
    """Give the number of a GPU that decodes files sooner than the CPU, and has the memory.

    Parameters
    ----------
    function : Function
        Whose kernel is to run there.
    clouds : sequence of PointSource
        All of which are read whole.
    attributes : sequence of str
        What is read beside coordinates.
    options : Parameters
        Of the call.
    requested : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
    """
    declaration = function.declaration
    if kind_of(requested) == "cpu" or type(declaration.inputs) is not PointsInput:
        return None
    if not function.has_kernel("gpu") or declaration.cpu_only(options):
        return None
    compressed = [each for each in clouds if isinstance(each, LasSource) and not why_not(each)]
    if not compressed:
        return None
    number = number_of(requested)
    infos = [each for each in devices.gpus() if not each.problem and number in (None, each.number)]
    best = max(infos, key=lambda each: each.room, default=None)
    if best is None:
        return None
    rows = sum(cloud.rows for cloud in clouds)
    needed = function.output.work(Size(rows), options).bytes_kernel + rows * bytes_per_point(
        attributes
    )
    if needed + 2 * sum(map(compressed_bytes, compressed)) > best.room:
        return None
    started = 0 if process.is_started("gpu", best.number) else START
    seconds = started + _on_gpu(compressed)
    return best.number if seconds < _on_cpu(compressed) else None


def _on_gpu(clouds: Sequence[LasSource]) -> float:
    """Estimate the seconds of decoding: those of the longest chunk, or of all at full rate."""
    seconds = 0.0
    for layered in (True, False):
        chunks = [
            chunk.rows
            for cloud in clouds
            if cloud.laz is not None and cloud.laz[0].layered == layered
            for chunk in cloud.laz[1]
        ]
        if chunks:
            seconds += max(max(chunks) * PER_POINT[layered], sum(chunks) / GPU_RATE[layered])
    return seconds


def _on_cpu(clouds: Sequence[LasSource]) -> float:
    """Estimate the seconds of decoding on all threads."""
    return sum(
        cloud.rows / CPU_RATE[cloud.laz[0].layered] / n_threads()
        for cloud in clouds
        if cloud.laz is not None
    )
