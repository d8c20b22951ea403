"""Which GPU each worker of a machine sees."""

import os
from collections.abc import Sequence

from spatialq.errors import DeviceError
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Parameters
from spatialq.planner import devices
from spatialq.planner.plan import kind_of, number_of

VISIBLE = "CUDA_VISIBLE_DEVICES"
OF_CONTEXT = 600 << 20
"""Bytes of a GPU that a process takes beside what `SPATIALQ_GPU_MEMORY` counts."""


def may_use_gpus(device: str, function: Function, options: Parameters) -> bool:
    """Whether a call may run on a GPU, wherever there is one."""
    has_kernel = function.has_kernel("gpu") and not function.declaration.cpu_only(options)
    return has_kernel and kind_of(device) != "cpu"


def gpus_for(
    caller: str, device: str, function: Function, options: Parameters
) -> list[devices.DeviceInfo]:
    """List the GPUs of this machine that workers may use.

    Parameters
    ----------
    caller : str
    device : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
    function : Function
    options : Parameters

    Returns
    -------
    list of DeviceInfo
        None for 'cpu', a function without a kernel for GPUs, and 'auto' where there is no GPU.

    Raises
    ------
    DeviceError
        If a GPU was asked for and there is none, or none of the number.
    """
    kind, number = kind_of(device), number_of(device)
    if not may_use_gpus(device, function, options):
        return []
    there = devices.gpus()
    found = [each for each in there if not each.problem and number in (None, each.number)]
    if not found and kind == "gpu":
        reason = there[0].problem or f"there are {len(there)} GPUs, the first is gpu:0"
        message = f"{caller}: device '{device}' cannot be used: {reason}"
        raise DeviceError(message)
    return found


def environment_of(gpus: Sequence[devices.DeviceInfo], worker: int, workers: int) -> dict[str, str]:
    """Give the variables with which a worker sees one GPU, in turn; several share its memory.

    Parameters
    ----------
    gpus : sequence of DeviceInfo
        Those of the job; without any, a worker has the variables of this process.
    worker : int
        Its number, from 0.
    workers : int
        How many there are.
    """
    if not gpus:
        return {}
    turn = worker % len(gpus)
    gpu, sharing = gpus[turn], len(range(turn, workers, len(gpus)))
    variables = {VISIBLE: _visible(gpu.number)}
    if sharing > 1 and devices.GPU_MEMORY not in os.environ:
        variables[devices.GPU_MEMORY] = f"{max(1, gpu.room // sharing - OF_CONTEXT)}B"
    return variables


def _visible(number: int) -> str:
    """Name a GPU that this process sees as it is named in `CUDA_VISIBLE_DEVICES`."""
    given = os.environ.get(VISIBLE)
    return str(number) if given is None else given.split(",")[number].strip()
