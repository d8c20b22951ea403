"""The interface of kernels to the GPUs: arrays, transfers, launches.

Only this module imports CuPy. `udfs/*/gpu.py` use `device()` for everything, so that tests can
replace it by a device that runs the same CUDA sources on the host.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.runtime import cubins, forks, progress
from spatialq.runtime.threads import workers

MASKS = Path(__file__).with_name("masks.cu")
PIECE = 8 << 20  # bytes per transfer from memory that is not pinned
PORTABLE = 1  # cudaHostRegisterPortable: locked for all devices
SMALL = 4 << 20  # bytes up to which arrays are copied together
ALIGNED = 256  # bytes
COPIERS = 8  # maximum number of threads that copy such pieces into pinned memory


class Device:
    """One NVIDIA GPU.

    What is compiled, and streams and buffers of transfers, are its own. Its methods work on the
    GPU that the thread uses, see `use`.

    Attributes
    ----------
    xp : module
        CuPy, which has the functions of NumPy for arrays of the device.
    number : int
        Among the GPUs that the process sees.
    """

    def __init__(self, number: int = 0) -> None:
        import cupy

        self.xp = cupy
        self.number = number
        self._cuda = cupy.cuda
        self._kernels: dict[tuple[Path, str], Any] = {}
        self._modules: dict[Path, Any] = {}
        self._lanes: list[_Lane] = []
        self._together: _Lane | None = None
        self._lock = forks.lock()
        gpu = self._cuda.Device(number)
        self._capability = gpu.compute_capability
        attributes = gpu.attributes
        self.multiprocessors = int(attributes["MultiProcessorCount"])

    @contextmanager
    def use(self) -> Iterator[None]:
        """Use this GPU; if memory runs out, free the unused blocks of CuPy's memory pool."""
        try:
            with self._cuda.Device(self.number):
                yield
        except self._cuda.memory.OutOfMemoryError:
            with self._cuda.Device(self.number):
                self.trim()
            raise

    def launch(self, source: Path, kernel: str, blocks: Any, threads: int, *arguments: Any) -> None:
        """Launch a kernel of a CUDA source, which is loaded or compiled on its first use.

        Parameters
        ----------
        source : path
        kernel : str
        blocks : tuple of int
        threads : int
            Threads per block.
        *arguments
            Device arrays (passed as pointers), int (64 bits), NumPy scalars, or NumPy arrays of one
            record (passed by value).

        Raises
        ------
        Cancelled
            If the current task was cancelled; so do the methods that transfer arrays.
        """
        progress.check()
        self.kernel(source, kernel)(blocks, (threads,), arguments)

    def kernel(self, source: Path, name: str) -> Any:
        """Look up a kernel, compiled for this device."""
        found = self._kernels.get((source, name))
        if found is None:
            with self._lock:
                if source not in self._modules:
                    self._modules[source] = self._module(source)
                found = self._kernels[source, name] = self._modules[source].get_function(name)
        return found

    def _module(self, source: Path) -> Any:
        """Load what the wheel has of a source, else compile it."""
        for code in cubins.shipped(source, self._capability):
            module = self._cuda.function.Module()
            with suppress(self._cuda.driver.CUDADriverError):  # such as of a driver that is older
                module.load(code)
                return module
        text = source.read_text(encoding="utf-8")
        return self.xp.RawModule(code=text, options=cubins.options(source))

    def is_here(self, array: Any) -> bool:
        """Whether an array is in the memory of a GPU."""
        return on_gpu(array)

    def view(self, array: Any) -> Any:
        """View an array of a GPU, made by any library, as an array of CuPy; nothing is copied."""
        if hasattr(array, "__cuda_array_interface__"):
            return self.xp.asarray(array)
        return self.xp.from_dlpack(array)

    def filled(self, byte: int, size: int) -> Any:
        """Allocate uint8[size] on the device, filled with one value."""
        array = self.xp.empty(size, np.uint8)
        array.data.memset_async(byte, size)
        return array

    def free_bytes(self) -> int:
        """Available memory: free memory, and unused blocks of CuPy's memory pool."""
        with self._cuda.Device(self.number):
            free, _ = self._cuda.runtime.memGetInfo()
            return int(free) + int(self.xp.get_default_memory_pool().free_bytes())

    def trim(self) -> None:
        """Free the unused blocks of CuPy's memory pool.

        After the last tile of a pass: small arrays that stay would else be parts of its blocks, and
        the tiles of the next pass would need others.
        """
        self.xp.get_default_memory_pool().free_all_blocks()

    def address(self, array: Any) -> int:
        """Address of the first element of a device array."""
        return int(array.data.ptr)

    def download(self, array: Any, into: Any = None) -> Any:
        """Copy a device array into a NumPy array, after all earlier launches have finished.

        A large array goes piece by piece through small pinned buffers, which several threads empty
        while others are being filled: most of the time goes into pages that are written for the
        first time.

        Parameters
        ----------
        array : device array
        into : NumPy array, optional
            A contiguous one of the same shape and type; the copy is direct if its pages are locked.
        """
        progress.check()
        if array.nbytes <= PIECE or not array.flags.c_contiguous:
            return self.xp.asnumpy(array, out=into)
        if into is None:
            into = np.empty(array.shape, array.dtype)
        elif self._is_pinned(into):
            return self.xp.asnumpy(array, out=into)
        assert into.flags.c_contiguous
        assert (into.shape, into.dtype) == (array.shape, array.dtype)
        self._cuda.get_current_stream().synchronize()
        there = into.reshape(-1).view(np.uint8)
        pieces = [
            (there[start : start + PIECE], array.data + start)
            for start in range(0, array.nbytes, PIECE)
        ]
        with self._lock:
            self._copy(pieces, _Lane.receive)
        return into

    def lock_pages(self, address: int, size: int) -> bool:
        """Lock pages of the host, from and to which copies then go directly; whether it worked."""
        try:
            with self._cuda.Device(self.number):
                self._cuda.runtime.hostRegister(address, size, PORTABLE)
        except self._cuda.runtime.CUDARuntimeError:  # such as beyond a limit of the system
            return False
        return True

    def unlock_pages(self, address: int) -> None:
        """Undo `lock_pages`, after all copies have ended."""
        with self._cuda.Device(self.number):
            self._cuda.runtime.hostUnregister(address)

    def upload_small(self, array: Any) -> Any:
        """Copy one small NumPy array to the device; `upload` copies several in one transfer."""
        return self.upload([array])[0]

    def upload(self, arrays: "list[Any]") -> "list[Any]":
        """Copy NumPy arrays to the device.

        Small arrays are copied together, without waiting for earlier launches. Pinned memory is
        copied directly. Other memory is copied piece by piece through small pinned buffers, which
        several threads fill while other buffers are being transferred.
        """
        progress.check()
        stream = self._cuda.get_current_stream()
        if sum(array.nbytes + ALIGNED for array in arrays) <= SMALL:
            return self._upload_together(arrays, stream)
        arrays = [np.ascontiguousarray(array) for array in arrays]
        there = [self.xp.empty(array.shape, array.dtype) for array in arrays]
        pieces = []
        for array, target in zip(arrays, there, strict=True):
            if array.nbytes <= PIECE // 4 or self._is_pinned(array):
                target.data.copy_from_host_async(array.ctypes.data, array.nbytes, stream)
                continue
            source = array.reshape(-1).view(np.uint8)
            pieces += [
                (source[start : start + PIECE], target.data + start)
                for start in range(0, array.nbytes, PIECE)
            ]
        if pieces:
            stream.synchronize()  # earlier uses of the arrays' memory have finished
            with self._lock:
                self._copy(pieces, _Lane.send)
        stream.synchronize()
        return there

    def upload_file(self, path: Path, offset: int, size: int) -> Any:
        """Copy bytes of a file to the device: uint8[size].

        Several threads read into small pinned buffers while others are being transferred, so that
        the bytes are in no other memory of the process.

        Raises
        ------
        EOFError
            If the file ends before.
        """
        there = self.xp.empty(size, np.uint8)
        pieces = [
            (Piece(path, offset + start, min(PIECE, size - start)), there.data + start)
            for start in range(0, size, PIECE)
        ]
        self._cuda.get_current_stream().synchronize()  # earlier uses of the memory have finished
        with self._lock:
            self._copy(pieces, _Lane.read)
        return there

    def _upload_together(self, arrays: "list[Any]", stream: Any) -> "list[Any]":
        ends = np.cumsum([0, *(-(-array.nbytes // ALIGNED) * ALIGNED for array in arrays)]).tolist()
        memory = self.xp.empty(max(ends[-1], 1), np.uint8).data
        there = [
            self.xp.ndarray(array.shape, array.dtype, memory + start)
            for array, start in zip(arrays, ends[:-1], strict=True)
        ]
        with self._lock:
            if self._together is None:
                self._together = _Lane(self._cuda, SMALL)
            buffer = self._together.buffer()
            for array, start in zip(arrays, ends[:-1], strict=True):
                into = buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
                np.copyto(into, array)
            self._together.copy(ends[-1], memory, stream)
        return there

    def _copy(
        self, pieces: "list[tuple[Any, Any]]", move: "Callable[[_Lane, Any, Any], None]"
    ) -> None:
        """Move pieces, each with its place on the device, through lanes in threads."""
        n = min(COPIERS, os.cpu_count() or 1, len(pieces))
        while len(self._lanes) < n:
            self._lanes.append(_Lane(self._cuda, PIECE))
        queue = iter(pieces)

        def through(lane: "_Lane") -> None:
            with self._cuda.Device(self.number):
                try:
                    for piece, there in queue:  # next() of a list's iterator is atomic
                        progress.check()
                        move(lane, piece, there)
                    lane.settle()
                finally:  # no copy goes on with memory that may be freed
                    lane.stop()

        with progress.nested(), workers(n) as pool:
            pool.map(through, self._lanes[:n])

    def _is_pinned(self, array: Any) -> bool:
        attributes = self._cuda.runtime.pointerGetAttributes(array.ctypes.data)
        return int(attributes.type) == 1  # cudaMemoryTypeHost


@dataclass(frozen=True)
class Piece:
    """Some bytes of a file."""

    path: Path
    offset: int
    size: int


class _Lane:
    """Two pinned buffers that are used alternately, and a stream of their own."""

    def __init__(self, cuda: Any, size: int) -> None:
        self.stream = cuda.Stream(non_blocking=True)
        self._memory = [cuda.alloc_pinned_memory(size) for _ in range(2)]
        self._buffers = [np.frombuffer(memory, np.uint8, size) for memory in self._memory]
        self._done = [cuda.Event(disable_timing=True) for _ in range(2)]
        self._current = 0
        self._received: Any = None
        """The piece of the host that the current buffer is for."""

    def send(self, piece: Any, target: Any) -> None:
        np.copyto(self.buffer()[: piece.size], piece)
        self.copy(piece.size, target, self.stream)

    def read(self, piece: "Piece", target: Any) -> None:
        into = self.buffer()[: piece.size]
        with piece.path.open("rb", buffering=0) as file:
            file.seek(piece.offset)
            done = 0
            while done < piece.size:
                n = file.readinto(into[done:])  # which may be fewer
                if not n:
                    raise EOFError
                done += n
        self.copy(piece.size, target, self.stream)

    def buffer(self) -> Any:
        """Give the buffer for the next copy, once the copy before the last one has ended."""
        self._current = 1 - self._current
        self._done[self._current].synchronize()
        return self._buffers[self._current]

    def copy(self, size: int, target: Any, stream: Any) -> None:
        """Copy the first bytes of the buffer to the device."""
        target.copy_from_host_async(self._buffers[self._current].ctypes.data, size, stream)
        self._done[self._current].record(stream)

    def receive(self, piece: Any, source: Any) -> None:
        """Begin to copy from the device, and settle what was begun before."""
        other = 1 - self._current
        source.copy_to_host_async(self._buffers[other].ctypes.data, piece.size, self.stream)
        self._done[other].record(self.stream)
        self.settle()
        self._current, self._received = other, piece

    def settle(self) -> None:
        """Write what was received last, once it is there."""
        if self._received is not None:
            self._done[self._current].synchronize()
            np.copyto(self._received, self._buffers[self._current][: self._received.size])
            self._received = None

    def stop(self) -> None:
        """Wait until nothing is copied any more, and forget what was not settled."""
        self.stream.synchronize()
        self._received = None


def count(mask: Any) -> int:
    """Count the values of a mask that are set.

    `count_nonzero`, `all` and `any` of CuPy would compile CUB first, which takes seconds for each.

    Parameters
    ----------
    mask : bool or uint8, any shape
        Of NumPy, or contiguous on the GPU of this thread.
    """
    if not on_gpu(mask):
        return int(np.count_nonzero(mask))
    here = device()
    total = here.filled(0, 8).view(np.uint64)
    blocks = max(1, min(-(-mask.size // 256), 8 * here.multiprocessors))
    here.launch(MASKS, "count_set", (blocks,), 256, mask, mask.size, total)
    return int(here.download(total)[0])


def on_gpu(array: Any) -> bool:
    """Whether an array of any library is in the memory of a GPU."""
    if hasattr(array, "__cuda_array_interface__"):
        return True
    where = getattr(array, "__dlpack_device__", None)
    return where is not None and int(where()[0]) == 2  # kDLCUDA


def number_of(array: Any) -> int:
    """Give the number of the GPU that has an array of any library, 0 for one of the host."""
    where = getattr(array, "__dlpack_device__", None)
    if where is not None:
        return int(where()[1])
    import cupy

    return int(cupy.asarray(array).device.id)


def from_ordered(bits: Any) -> list[float]:
    """Invert `ordered` of the CUDA sources, which maps float64 to uint64 of the same order."""
    sign = np.uint64(1 << 63)
    values: list[float] = np.where(bits & sign, bits ^ sign, ~bits).view(np.float64).tolist()
    return values


def bounds(bits: Any) -> tuple[list[float], list[float]] | None:
    """Decode uint64[7] of geometry/bounds.cuh: minima and maxima of x, y and z.

    None if a value was not finite.
    """
    every = np.uint64(2**64 - 1)
    if bits[6] != every:
        return None
    ends = from_ordered(bits[:6] ^ np.array([0, every] * 3, np.uint64))
    return ends[::2], ends[1::2]


_numbers: ContextVar[tuple[int, ...]] = ContextVar("spatialq_gpus", default=(0,))


def numbers() -> tuple[int, ...]:
    """Give the numbers of the GPUs that the call of this thread may use; the first is its own."""
    return _numbers.get()


@contextmanager
def on(*numbers: int) -> Iterator[None]:
    """Let what is called in the block use some GPUs; without numbers those that it had."""
    token = _numbers.set(numbers or _numbers.get())
    try:
        yield
    finally:
        _numbers.reset(token)


@contextmanager
def beside(caller: str, *arrays: Any) -> Iterator[None]:
    """Use the GPU that has those of some arrays that are on a GPU, of which there is one at least.

    Raises
    ------
    ValueError
        If they are on several GPUs.
    """
    there = sorted({number_of(each) for each in arrays if on_gpu(each)})
    if len(there) > 1:
        several = " and ".join(f"gpu:{number}" for number in there)
        message = f"{caller}: all arrays must be on one GPU, got some on {several}"
        raise ValueError(message)
    with on(*there), device().use():
        yield


class _Devices:
    """The GPUs that this process uses, by their numbers."""

    def __init__(self) -> None:
        self._made: dict[int, Device] = {}
        self._lock = forks.lock()

    def __call__(self) -> Any:
        """Return the GPU of this thread, see `numbers`.

        `spatialq.planner.devices` tells whether there is one.
        """
        number = numbers()[0]
        found = self._made.get(number)
        if found is None:
            with self._lock:
                found = self._made.get(number) or Device(number)
                self._made[number] = found
        return found

    def has(self, number: int) -> bool:
        return number in self._made


device: Any = _Devices()


def is_started(number: int = 0) -> bool:
    """Whether this process uses a GPU already, so that asking it costs next to nothing."""
    # tests put another device in its place
    return not isinstance(device, _Devices) or device.has(number)


def free_bytes(total: int, number: int = 0) -> int | None:
    """Give the free bytes of a GPU that this process uses already, else None.

    To ask is to start the GPU, which takes half a second and some hundred MiB of its memory.
    """
    if not is_started(number):
        return None
    with on(number):
        return min(int(device().free_bytes()), total)
