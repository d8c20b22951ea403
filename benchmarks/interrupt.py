"""How long Ctrl-C takes to end a call of each function, with results of no call left behind.

    python benchmarks/interrupt.py [--points N] [--elements N] [--side N] [--device gpu] [NAME ...]

Each call is interrupted at several moments of its time, and the longest of the times counts: from
the signal to the exception, and to the end of the last thread of the call. Signals are those of
POSIX.
"""

import argparse
import os
import signal
import threading
import time

import numpy as np
from clouds import make_cloud

import spatialq
from spatialq.data.meshes import Meshes
from spatialq.runtime.threads import n_threads

MOMENTS = (0.02, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
"""Shares of the time of a whole call."""
FACES = [
    (0, 2, 1), (1, 2, 3), (4, 5, 6), (5, 7, 6), (0, 1, 4), (1, 5, 4),
    (2, 6, 3), (3, 6, 7), (0, 4, 2), (2, 4, 6), (1, 3, 5), (3, 7, 5),
]  # fmt: skip


def boxes(n):
    """Make boxes of 1 m on a lattice of 0.95 m, so that each meets its 26 neighbours."""
    side = round(n ** (1 / 3)) + 1
    place = np.stack(np.unravel_index(np.arange(n), (side, side, side)), axis=1)
    corners = np.array([(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1)], float)
    vertices = (0.95 * place[:, None] + corners).reshape(-1, 3)
    faces = np.tile(np.array(FACES, np.int32), (n, 1))
    return Meshes(vertices, faces, 8 * np.arange(n + 1), len(FACES) * np.arange(n + 1))


def seconds_to_end(work, moment):
    """Interrupt work after some seconds; return those to the exception and to the last thread.

    None if it had ended before.
    """
    before, sent = set(threading.enumerate()), []

    def interrupt():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(moment, interrupt)
    try:
        timer.start()
        work()
        timer.cancel()
        timer.join()
        time.sleep(0.01)  # a signal that was sent arrives here
    except KeyboardInterrupt:
        raised = time.perf_counter()
        for thread in set(threading.enumerate()) - before - {timer}:
            thread.join()
        return raised - sent[0], time.perf_counter() - sent[0]
    return None


def calls(arguments):
    """Name what is run: the call, and its size."""
    device = arguments.device
    n = arguments.points
    x, y, z = make_cloud("dense", n=n)
    for name, options in {
        "owm_ground": {},
        "owm_ground, octree": {"ties": "octree"},
        "classify_ground": {},
        "ground_surface": {"resolution": 0.5},
        "detect_planes": {},
        "plane_points": {},
        "build_lod": {},
    }.items():
        function = name.split(",")[0]
        yield (
            name,
            f"{n:,} points",
            lambda f=function, o=options: spatialq.run(f, x, y, z, device=device, **o),
        )
    wall = np.column_stack([x[: n // 10], y[: n // 10], z[: n // 10]])
    low = wall.min(axis=0)
    model = boxes(arguments.elements // 10)
    model = Meshes(model.vertices + low, model.faces, model.vertex_starts, model.face_starts)
    yield (
        "plane_elements",
        f"{len(wall):,} points, {len(model):,} elements",
        lambda: spatialq.run("plane_elements", *wall.T, elements=model, device=device),
    )
    side = arguments.side
    heights = np.add.outer(np.sin(np.arange(side) / 9), np.cos(np.arange(side) / 7))
    heights = heights.astype(np.float32)
    yield (
        "pops_features",
        f"{side:,} x {side:,} cells",
        lambda: spatialq.run_grid("pops_features", heights, dx=60.0, device=device),
    )
    elements = boxes(arguments.elements)
    for name, options in {
        "intersects_with": {"relations": True},
        "distance": {"max_distance": 0.1},
        "distance, k": {"k": 3},
        "direction": {},
    }.items():
        function = name.split(",")[0]
        yield (
            name,
            f"{len(elements):,} elements",
            lambda f=function, o=options: spatialq.run_elements(f, elements, device=device, **o),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("functions", nargs="*", help="such as owm_ground; by default all")
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--elements", type=int, default=100_000)
    parser.add_argument("--side", type=int, default=4000, help="rows and columns of the grid")
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"))
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"{arguments.device}, {n_threads()} threads")
    print("| function | size | whole call | to the exception | to the end of its threads |")
    print("| --- | --- | --- | --- | --- |")
    for name, size, work in calls(arguments):
        if arguments.functions and name.split(",")[0] not in arguments.functions:
            continue
        try:
            work()  # compiles
            started = time.perf_counter()
            work()
            whole = time.perf_counter() - started
        except (TypeError, ValueError) as error:
            print(f"| {name} | {size} | {error} |")
            continue
        found = [seconds_to_end(work, share * whole) for share in MOMENTS]
        if times := [each for each in found if each is not None]:
            raised, ended = np.max(times, axis=0)
            print(
                f"| {name} | {size} | {whole:.2f} s | {raised:.2f} s | {ended:.2f} s |", flush=True
            )
        else:
            print(f"| {name} | {size} | {whole:.2f} s | shorter than the moments |", flush=True)


if __name__ == "__main__":
    main()
