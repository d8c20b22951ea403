"""`pops_features` and `pops_patches` on the GPU: parity with the CPU, time by kernel; JSON files.

python benchmarks/pops_features_gpu.py --commit HASH [--out FOLDER] [--side CELLS]

The terrain of benchmarks/pops_features.py, made on the device. *Kernels* take the raw features of
all patches of a grid that is there, band by band; *aggregation* is beside them.
"""

import argparse
from dataclasses import replace
from functools import partial

import cupy as cp
import measure
import numpy as np
from pops_features import METHODS, SCALES, terrain
from spatialq.udfs.pops_features import Options, gpu
from spatialq.udfs.pops_features.division import divide

from spatialq.data.grid import Grid
from spatialq.runtime import cuda

SHAPES = ("skewness", "kurtosis")


def raw(grid, options, *, aggregate=False):
    """Launch the kernels of all bands, without the columns of a result."""
    kernels = gpu.Kernels(cuda.device(), grid, options)
    for _, features in kernels.bands():
        if aggregate:
            kernels.aggregate(features)


def of_scales(grid, name, method):
    """Figures of the kernels for some scales and methods."""
    options = Options(scales=SCALES[name], methods=METHODS[method])
    visits = (
        sum(scale.patches * scale.cells for scale in divide(grid, options).scales)
        / divide(grid, options).x.size ** 2
    )
    kernels_ms = measure.wall_ms(partial(raw, grid, options))
    report = {
        "scales": name,
        "method": method,
        "visits_of_a_cell": visits,
        "kernels_ms": kernels_ms,
        "aggregation_ms": measure.wall_ms(partial(raw, grid, options, aggregate=True)) - kernels_ms,
        "by_kernel_ms": measure.by_kernel(partial(raw, grid, options, aggregate=True)),
    }
    return measure.show(report)


def worst_difference(found, expected, of_examples):
    """Largest difference from the CPU's numbers, relative to them (or to 1 for shapes)."""
    worst = 0.0
    rows = cp.flatnonzero(cp.isin(found["example_id"], cp.asarray(of_examples)))
    order = cp.lexsort(cp.stack([rows, found["example_id"][rows]]))
    rows = rows[order]
    for name, values in expected.items():
        if name in ("method", "feature"):
            ours = np.asarray(found[name].names, object)[found[name].codes[cp.asnumpy(rows)]]
            assert (ours == np.asarray(values.names, object)[values.codes]).all()
            continue
        ours = cp.asnumpy(found[name][rows])
        assert (np.isnan(ours) == np.isnan(values)).all(), name
        scale = np.maximum(np.abs(values), 1.0 if name in SHAPES else 1e-300)
        worst = max(worst, float(np.nanmax(np.abs(ours - values) / scale, initial=0.0)))
    return worst


def assert_as_on_the_cpu(found, grid, options):
    """Compare rows of examples in the south, in the middle and in the north with the CPU's."""
    y = divide(grid, options).y
    differences = []
    for row in sorted({0, y.count // 2, y.count - 1}):
        south = row * y.step
        z = cp.asnumpy(grid.z[south : south + y.size])
        band = replace(grid, z=z, first_row=south, all_rows=grid.rows)
        expected = measure.kernel("pops_features", "cpu")(band, options)
        ids = expected["example_id"]
        order = np.lexsort([np.arange(ids.size), ids])
        for name, values in expected.items():
            if name in ("method", "feature"):
                expected[name] = replace(values, codes=values.codes[order])
            else:
                expected[name] = values[order]
        differences.append(worst_difference(found, expected, np.unique(ids)))
    assert max(differences) <= 1e-9, differences
    return max(differences)


def figures(function, grid, cpu_grid, options):
    """Figures of a function as the planner wants them; the CPU has a smaller grid."""
    on_cpu, on_gpu = (measure.kernel(function, device) for device in ("cpu", "gpu"))
    points, cpu_points = grid.rows * grid.columns, cpu_grid.rows * cpu_grid.columns
    report = {"scales": options.scales, "points": points, "cpu_points": cpu_points}
    if function == "pops_features":
        difference = assert_as_on_the_cpu(on_gpu(grid, options), grid, options)
        report["worst_difference"] = difference
    cpu_first, cpu_ms, _ = measure.first_and_next(partial(on_cpu, cpu_grid, options))
    work = measure.work_of(function, points, options)
    device_ms = measure.wall_ms(partial(on_gpu, grid, options))
    here = replace(grid, z=cp.asnumpy(grid.z))
    report |= {
        "cpu_first_s": cpu_first,
        "cpu_ms": cpu_ms * points / cpu_points,
        "bytes": work.bytes_in + work.bytes_out,
        "steps": work.steps,
        "device_ms": device_ms,
        "M_points_per_s": points / device_ms / 1e3,
        "host_to_host_ms": measure.wall_ms(partial(on_gpu, here, options), 3),
    }
    return measure.show(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    measure.add_arguments(parser)
    parser.add_argument("--side", type=int, default=30_000, help="of the grid, in cells")
    parser.add_argument("--cpu-side", type=int, default=6000)
    parser.add_argument("--patches-side", type=int, default=6000, help="for pops_patches")
    arguments = parser.parse_args()
    grid = terrain(arguments.side, arguments.side, xp=cp)
    other = terrain(arguments.cpu_side, arguments.cpu_side)
    small = Grid(np.random.default_rng(1).random((40, 40), np.float32), dx=60.0, dy=60.0)
    of = {
        "pops_features": [grid, grid],
        "pops_patches": [terrain(arguments.patches_side, arguments.patches_side, xp=cp)],
    }
    for function, grids in of.items():
        kernel = measure.kernel(function, "gpu")
        sets = SCALES["small"], SCALES["all nine"]
        report = measure.header(
            function, arguments.commit,
            small_call_ms=measure.wall_ms(partial(kernel, small, Options())),
            clouds=[
                figures(function, each, other, Options(scales=scales))
                for each, scales in zip(grids, sets, strict=False)
            ],
        )  # fmt: skip
        if function == "pops_features":
            report["read_ms"] = measure.wall_ms(grid.z.max)
            report["kernels"] = [of_scales(grid, s, m) for s in SCALES for m in ("PCA", "STAT")]
        measure.write(arguments.out, report["function"], report)


if __name__ == "__main__":
    main()
