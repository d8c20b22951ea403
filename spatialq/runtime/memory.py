"""Main memory: how much is free within a container's limits, and how much this process uses."""

import ctypes
import mmap
import os
import sys
from pathlib import Path
from typing import NamedTuple

MEMINFO = Path("/proc/meminfo")
STATM = Path("/proc/self/statm")
CGROUP = Path("/proc/self/cgroup")
CGROUPS = Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60
"""What the first version of control groups says where there is no limit, or more."""


def host_total() -> int:
    """Give the bytes of main memory; 0 where the system does not say."""
    if sys.platform == "win32":
        return _windows()[0]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 0


def host_free() -> int:
    """Give the bytes of main memory that a call may use without swapping; 0 if not known.

    On Linux that is what the kernel calls available, and at most what the control group (a
    container, a job of a cluster) has left. On Windows it is the available physical memory, and
    elsewhere all of it.
    """
    if sys.platform == "win32":
        return _windows()[1]
    known = [each for each in (_available(), _left_in_groups()) if each is not None]
    return min(known, default=host_total())


class Resident(NamedTuple):
    """Bytes of this process that are in main memory."""

    bytes: int
    of_files: int
    """Of them, pages of libraries and other files, and of memory shared with other processes."""


def resident() -> Resident:
    """Give the bytes of this process that are in main memory; 0 outside Linux."""
    try:
        with STATM.open("rb", buffering=0) as file:
            _, pages, shared, *_ = file.read(256).split()
    except OSError:
        return Resident(0, 0)
    return Resident(int(pages) * mmap.PAGESIZE, int(shared) * mmap.PAGESIZE)


def private() -> int:
    """Give the bytes that this process may write alone, as RLIMIT_DATA counts; 0 outside Linux."""
    try:
        return int(STATM.read_text(encoding="ascii").split()[5]) * mmap.PAGESIZE
    except OSError:
        return 0


def _available() -> int | None:
    try:
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def _left_in_groups() -> int | None:
    """Give what the tightest control group around this process has left; None without a limit."""
    try:
        memberships = CGROUP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    left = []
    for membership in memberships:
        number, controllers, path = membership.split(":", 2)
        if number == "0":
            root, limit, used = CGROUPS, "memory.max", "memory.current"
            cache = "inactive_file"
        elif "memory" in controllers.split(","):
            root, limit, used = CGROUPS / "memory", *V1_FILES
            cache = "total_inactive_file"
        else:
            continue
        folder = root / path.lstrip("/")
        # a container may see its own group as the root, and not the path that its host knows
        for each in [folder, *folder.parents]:
            if each.is_relative_to(root):
                left += _left_in(each, limit, used, cache)
    return min(left, default=None)


V1_FILES = "memory.limit_in_bytes", "memory.usage_in_bytes"


def _left_in(folder: Path, limit: str, used: str, cache: str) -> list[int]:
    try:
        most = (folder / limit).read_text(encoding="ascii").strip()
        if most == "max" or int(most) >= UNLIMITED:
            return []
        taken = int((folder / used).read_text(encoding="ascii"))
        # pages of files that were read count as used, and are given back when memory is needed
        for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(" ")
            if name == cache:
                taken -= int(value)
    except (OSError, ValueError):
        return []
    return [max(int(most) - taken, 0)]


class _Status(ctypes.Structure):
    """MEMORYSTATUSEX of Windows."""

    _fields_ = [
        ("length", ctypes.c_ulong),
        ("load", ctypes.c_ulong),
        *(
            (name, ctypes.c_ulonglong)
            for name in ("total", "available", "pages", "free_pages", "room", "free_room", "more")
        ),
    ]


def _windows() -> tuple[int, int]:
    status = _Status(length=ctypes.sizeof(_Status))
    kernel = getattr(ctypes, "windll").kernel32  # noqa: B009  # there is none elsewhere
    if not kernel.GlobalMemoryStatusEx(ctypes.byref(status)):
        return 0, 0
    return int(status.total), int(status.available)
