"""Whether the planes that `detect_planes` returns are flat: real airborne tiles and indoor scans.

python benchmarks/plane_flatness.py [--only NAME ...] [--data FOLDER] [--each]
                                    [--out FOLDER] [--commit HASH]

The measure of a plane is made of its points alone:

noise   root mean square distance of points from the plane through each one and its 11 neighbours
        of the same plane, with the three degrees of freedom of that plane taken off
rmse    of the points from their plane, as `detect_planes` gives it; in units of the noise, too
bend    largest distance of a local mean of the points from their plane, over the cells of a raster
        in the plane of 25 points on average, of at least 12; three standard errors of a mean of
        that many points are taken off, so that it is 0 on a flat plane; in units of the noise

Of a cloud the table has the number of planes, the share of the points on them, the greatest rmse
in units of the coordinates, and of planes that have 100 points or more, which make the ratios
precise to a tenth, the greatest ratios, and how many planes have one above 3. A * marks the clouds
on which constants were chosen.
"""

import argparse
import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path

import laspy
import measure
import numpy as np
from scipy.spatial import cKDTree

DATA = Path(os.environ.get("SPATIALQ_TEST_DATA", Path(__file__).parents[2] / "shared"))
CHOSEN_ON = {
    "Megaplot_small", "autzen_trim", "bcts_1", "isprs_FSite8_orig", "isprs_samp11", "isprs_samp21",
    "isprs_samp41", "isprs_samp51", "test_data_77050_627755_LA93_IGN69",
    "test_semis_2023_0292_6833_LA93_IGN69", "warsaw_small",
    "3dtk_scan000", "caixa", "indoor", "pcl_capture0001", "pcl_room_scan1", "redkitchen_000",
}  # fmt: skip
NEIGHBOURS = 12
SAMPLE = 3000  # points of a plane at which the noise is measured
CELL, LEAST = 25, 12  # points of a cell on average, and of one that counts
ENOUGH = 100  # points of a plane whose ratios count
TIMES = 3  # the noise, up to which a point is near its plane


def noise_of(points):
    """Standard deviation of the points of a plane about what is around each of them."""
    if len(points) < NEIGHBOURS:
        return np.nan
    at = points[:: -(-len(points) // SAMPLE)]
    around = points[cKDTree(points).query(at, NEIGHBOURS)[1]]
    around -= around.mean(axis=1, keepdims=True)
    spread = np.einsum("nki,nkj->nij", around, around) / (NEIGHBOURS - 3)
    return float(np.sqrt(np.linalg.eigvalsh(spread)[:, 0].clip(0).mean()))


def bend_of(points, normal, distance, noise):
    """Largest distance of a local mean, less what the noise explains."""
    first = np.eye(3)[np.abs(normal).argmin()]
    u = np.cross(normal, first)
    u /= np.linalg.norm(u)
    at = points @ np.column_stack([u, np.cross(normal, u)])
    side = np.sqrt(CELL / density(at))
    cells = np.floor((at - at.min(axis=0)) / side).astype(np.int64)
    _, cell, counts = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    means = np.bincount(cell.reshape(-1), distance) / counts
    excess = np.abs(means) - 3 * noise / np.sqrt(counts)
    return float(max(excess[counts >= LEAST].max(initial=0.0), 0.0))


def density(at):
    """Points per area where a plane has points, by its pixels with four points on average."""
    side = 2 * np.sqrt(np.ptp(at, axis=0).prod() / len(at)) + 1e-12
    for _ in range(3):
        pixels = np.unique(np.floor(at / side), axis=0)
        found = len(at) / (len(pixels) * side**2)
        side = 2 / np.sqrt(found)
    return found


def measures(cloud):
    """Points, rmse, noise, bend and area of each plane, float64[planes, 5]; processor seconds."""
    from spatialq.udfs.detect_planes import Options, cpu

    start = time.process_time()
    found = cpu.run(*cloud, None, Options(), ["detect_planes", "plane_points"])
    seconds = time.process_time() - start
    planes, of_points = found["detect_planes"], found["plane_points"]
    order = np.argsort(of_points["plane_id"], kind="stable")
    ends = np.cumsum(np.bincount(of_points["plane_id"], minlength=len(planes["rmse"]) + 1))
    points, rows = np.column_stack(cloud), []
    for k in range(len(planes["rmse"])):
        own = order[ends[k] : ends[k + 1]]
        normal = np.array([planes[name][k] for name in ("nx", "ny", "nz")])
        noise = noise_of(points[own])
        bend = bend_of(points[own], normal, of_points["distance"][own], noise)
        rows.append((own.size, planes["rmse"][k], noise, bend, planes["area"][k]))
    return np.array(rows).reshape(-1, 5), seconds


def clouds(data):
    """Name and points of the tiles and scans."""
    for folder in (".", "lidar", "indoor"):
        for path in sorted((data / folder).glob("*.la[sz]")):
            yield path.stem.removesuffix(".copc"), path


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", help="clouds of these names")
    parser.add_argument("--data", type=Path, default=DATA / "data")
    parser.add_argument("--each", action="store_true", help="also the widest planes of each cloud")
    measure.add_arguments(parser)
    arguments = parser.parse_args()
    results = {}
    for name, path in clouds(arguments.data):
        if arguments.only and name not in arguments.only:
            continue
        las = laspy.read(path)
        points = np.column_stack([las.x, las.y, las.z])
        points = np.unique(points[np.isfinite(points).all(axis=1)], axis=0)
        planes, seconds = measures([np.ascontiguousarray(values) for values in points.T])
        count, rmse, noise, bend, area = planes.T
        many = count >= ENOUGH
        noise = np.maximum(noise, 1e-6 * np.ptp(points, axis=0).max())
        results[name] = {
            "planes": len(planes),
            "on planes": float(count.sum() / len(points)),
            "rmse": float(rmse.max(initial=0.0)),
            "rmse/noise": float((rmse / noise)[many].max(initial=0.0)),
            "bend/noise": float((bend / noise)[many].max(initial=0.0)),
            "many points": int(np.count_nonzero(many)),
            "rmse > 3 noise": int(np.count_nonzero((rmse > TIMES * noise)[many])),
            "bend > 3 noise": int(np.count_nonzero((bend > TIMES * noise)[many])),
            "processor seconds": seconds,
        }
        figures = "  ".join(
            f"{what} {value:.3g}" if isinstance(value, float) else f"{what} {value}"
            for what, value in results[name].items()
        )
        print(f"{name + ' *' * (name in CHOSEN_ON):40} {figures}", flush=True)
        for k in np.argsort(-count)[:6] if arguments.each else ():
            print(
                f"    {count[k]:8.0f} points  {area[k]:10.1f} m2  rmse {rmse[k]:.4f}"
                f"  noise {noise[k]:.4f}  bend {bend[k]:.4f}"
            )
    if not results:
        names = arguments.only or "that can be read"
        parser.exit(1, f"plane_flatness: --data {arguments.data} has no clouds {names}\n")
    report = {
        "device": platform.processor() or platform.machine(),
        "commit": arguments.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "chosen on": sorted(CHOSEN_ON),
        "clouds": results,
    }
    measure.write(arguments.out, "plane_flatness", report)


if __name__ == "__main__":
    main()
