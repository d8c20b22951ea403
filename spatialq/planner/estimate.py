"""The estimated seconds of a call on a device, in named parts."""

from dataclasses import dataclass

from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Size, Work
from spatialq.planner import log, process, rates
from spatialq.planner.devices import DeviceInfo
from spatialq.planner.rates import Transport


@dataclass(frozen=True)
class Estimate:
    """Seconds of a call, from the first look at its arguments to the rows of its result."""

    start: float
    """Imports and the context of a GPU, in a process that has not used the device."""
    load: float
    """Compiled code from disk, in a process that has not used the function."""
    transfer: float
    """To the memory of a GPU and back, and to the arrays of tiles."""
    kernel: float
    """The kernel, as the rates and this process's log have it."""
    transport: float
    """From where the data lies to arrays, and back."""
    correction: float = 1.0
    """Factor by which the log corrects the kernel and its transfer; they contain it."""

    @property
    def call(self) -> float:
        """What the log measures: all but the transport."""
        return self.start + self.load + self.transfer + self.kernel

    @property
    def total(self) -> float:
        """What the caller waits for."""
        return self.call + self.transport

    @property
    def is_warm(self) -> bool:
        """Whether nothing has to be started or loaded."""
        return self.start == self.load == 0


def estimate(
    function: Function,
    device: DeviceInfo,
    size: Size,
    work: Work,
    transport: Transport,
    gpus: tuple[int, ...] = (),
) -> Estimate | None:
    """Estimate a call; None where its kernel was never measured on the device.

    Parameters
    ----------
    function, size, work, transport
        As of the call.
    device : DeviceInfo
        One device, of several GPUs the slowest.
    gpus : tuple of int
        Numbers of the GPUs that share the tiles of the call: each has a part of the loops, and of
        what travels to them, but what comes back goes through the host's memory.
    """
    measured, rate = rates.current(), rates.rate(function.name, device.device)
    if rate is None or not set(work.steps) <= set(rate.steps):
        return None
    numbers, count = gpus or (0,), max(1, len(gpus))
    cold = sum(not process.is_started(device.device, each) for each in numbers)
    is_loaded = cold == 0 and all(
        process.is_loaded(function.folder, device.device, each) for each in numbers
    )
    transfer = 0.0
    if device.device == "gpu" and size.device == "cpu":
        up = "page-locked" if transport in rates.PAGE_LOCKED else "pageable"
        # a download is as slow as the new memory of the host that it goes to: as arrays of tiles
        into_new = (work.bytes_out + work.bytes_host) * measured.transfer["download"]
        transfer = work.bytes_in * measured.transfer[up] / count + into_new
    correction = log.correction(function.name, device.device, size.rows)
    host = log.machine("cpu")
    loops = rate.seconds(work, device.cores if device.device == "cpu" else 1) - rate.start
    return Estimate(
        start=host * cold * measured.start[device.device],
        load=0.0 if is_loaded else host * rate.load,
        transfer=correction * transfer,
        kernel=correction * (rate.start + loops / count),
        transport=host * measured.transports[transport].seconds(work),
        correction=correction,
    )
