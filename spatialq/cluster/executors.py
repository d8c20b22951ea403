"""The executors by name: this process, several processes of this machine, or Ray."""

from collections.abc import Sequence

from spatialq.cluster.executor import Executor, cores
from spatialq.cluster.folder import CALLER
from spatialq.cluster.local_executor import LocalExecutor
from spatialq.cluster.ray_executor import RayExecutor
from spatialq.cluster.serial_executor import SerialExecutor
from spatialq.planner.devices import DeviceInfo
from spatialq.planner.plan import number_of, require_device
from spatialq.runtime.extras import missing

EXECUTORS = ("local", "serial", "ray")
WITHOUT_NUMBERS = {
    "ray": "since workers of Ray get their GPUs from it",
    "serial": "which has no processes that see one GPU each",
}
"""Executors for which a device must not be one GPU, and why."""
MAX_WORKERS = 100_000
WORKERS_OF_A_GPU = 4
"""By default: some read points while the kernels of others run, see `benchmarks/gpus.py`."""


def check_executor(name: str, workers: int | None, device: str) -> None:
    """Refuse an executor that cannot be, before a job is begun.

    Raises
    ------
    ValueError
        If there is none of the name, it needs a package that is not installed, or the number of
        workers or the device is none.
    """
    require_device(CALLER, device)
    if name not in EXECUTORS:
        message = f"{CALLER}: executor must be one of {', '.join(EXECUTORS)}, got {name!r}"
        raise ValueError(message)
    if workers is not None and (type(workers) is not int or not 1 <= workers <= MAX_WORKERS):
        message = (
            f"{CALLER}: workers must be a whole number from 1 to {MAX_WORKERS}, got {workers!r}"
        )
        raise ValueError(message)
    if name == "serial" and workers not in (None, 1):
        message = f"{CALLER}: workers must be 1 or left out with executor 'serial', got {workers}"
        raise ValueError(message)
    if name in WITHOUT_NUMBERS and number_of(device) is not None:
        message = (
            f"{CALLER}: device must be 'auto', 'cpu' or 'gpu' with executor {name!r}, "
            f"{WITHOUT_NUMBERS[name]}, got {device!r}"
        )
        raise ValueError(message)
    if name == "ray" and (reason := missing("ray")):
        message = f"{CALLER}: {reason}"
        raise ValueError(message)


def executor_of(
    name: str,
    workers: int | None,
    memory: int,
    gpus: Sequence[DeviceInfo] = (),
    *,
    uses_gpus: bool = False,
) -> Executor:
    """Make an executor.

    Parameters
    ----------
    name : 'local', 'serial' or 'ray'
    workers : int, optional
        By default some for each of the GPUs, without any one for each core of this machine; or the
        CPUs or GPUs that Ray has.
    memory : int
        Bytes that all workers of a machine may take together.
    gpus : sequence of DeviceInfo
        Of this machine, for its workers, see `gpus_for`.
    uses_gpus : bool
        Whether workers of Ray have a GPU each, if it has any.
    """
    if name == "serial":
        return SerialExecutor()
    if name == "ray":
        return RayExecutor(workers, memory, uses_gpus=uses_gpus)
    usual = max(len(gpus), min(WORKERS_OF_A_GPU * len(gpus), cores())) if gpus else cores()
    return LocalExecutor(workers or usual, memory, gpus)
