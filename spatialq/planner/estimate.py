"""What a call costs on a device, in named parts."""

from dataclasses import dataclass

from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Size, Work
from spatialq.planner import log, process, rates
from spatialq.planner.devices import DeviceInfo
from spatialq.planner.rates import Road


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
    road: float
    """From where the data lies to arrays, and back."""
    correction: float = 1.0
    """Factor by which the log corrects the kernel and its transfer; they contain it."""

    @property
    def call(self) -> float:
        """What the log measures: all but the road."""
        return self.start + self.load + self.transfer + self.kernel

    @property
    def total(self) -> float:
        """What the caller waits for."""
        return self.call + self.road

    @property
    def is_warm(self) -> bool:
        """Whether nothing has to be started or loaded."""
        return self.start == self.load == 0


def estimate(
    function: Function, device: DeviceInfo, size: Size, work: Work, road: Road
) -> Estimate | None:
    """Estimate a call; None where its kernel was never measured on the device."""
    measured, rate = rates.current(), rates.rate(function.name, device.device)
    if rate is None or not set(work.steps) <= set(rate.steps):
        return None
    is_started = process.is_started(device.device)
    is_loaded = is_started and process.is_loaded(function.folder, device.device)
    transfer = 0.0
    if device.device == "gpu" and size.device == "cpu":
        up = "page-locked" if road in rates.PAGE_LOCKED else "pageable"
        # a download is as slow as the new memory of the host that it goes to: as arrays of tiles
        into_new = (work.bytes_out + work.bytes_host) * measured.transfer["download"]
        transfer = work.bytes_in * measured.transfer[up] + into_new
    correction = log.correction(function.name, device.device, size.rows)
    return Estimate(
        start=0.0 if is_started else measured.start[device.device],
        load=0.0 if is_loaded else rate.load,
        transfer=correction * transfer,
        kernel=correction * rate.seconds(work, device.cores if device.device == "cpu" else 1),
        road=measured.roads[road].seconds(work),
        correction=correction,
    )
