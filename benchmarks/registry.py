"""All benchmarks: what `make bench` and `make bench-gpu` run, and the tests on tiny input.

A script of this folder is a benchmark of `BENCHMARKS` or one of `SHARED`. Arguments are written as
in a shell; `{house}` is a small model, `{cloud}` a LAZ file with colours and classes, `{data}` the
real files beside the checkout, `{one}` a folder with one of them, and `{folder}` an empty one.
"""

import os
from dataclasses import dataclass
from pathlib import Path

DATA = Path(os.environ.get("SPATIALQ_TEST_DATA", Path(__file__).parents[2] / "shared")) / "data"
CLOUD_POINTS = 3_000_000
"""Of `{cloud}` for the full benchmarks."""

SHARED = {
    "__main__": "runs the benchmarks of a kind",
    "buildings": "meshes of models, and copies of them",
    "clouds": "airborne clouds",
    "figures": "tables of README.md from results/",
    "lod_cloud": "coloured clouds",
    "measure": "times and result files",
    "naive_pops": "rival of pops_features",
    "open3d_rival": "rival of detect_planes, run by a Python that has Open3D",
    "paper_lod": "experiments of papers",
    "paper_owm": "experiments of papers",
    "paper_planes": "experiments of papers",
    "paper_pops": "experiments of papers",
    "paper_ql4bim": "experiments of papers",
    "planner_inputs": "inputs of rates and regret",
    "registry": "this list",
    "regret_call": "one call of regret",
    "rooms": "scenes of planes",
    "scan_changes": "changed models, their scans, and what coverage should say of them",
}
"""Scripts that others use."""


@dataclass(frozen=True)
class Benchmark:
    """A script, and how it is run."""

    script: str
    tiny: str = ""
    """Arguments that take about a second; what the tests run."""
    full: str = ""
    """Arguments for the figures of README.md; the defaults of the script are its own."""
    gpu: bool = False
    data: str = ""
    """File of `{data}` without which there is nothing to measure."""
    ray: bool = False
    not_on_host: str = ""
    """Why the tests do not run it on the host, which stands in for a GPU."""
    process: str = ""
    """Why the tests run it in a process of its own."""
    slow: bool = False
    """Whether even the tiny input takes more than a second or two, with compiled kernels."""


SIGNALS = "it interrupts its own process"

BENCHMARKS = [
    Benchmark("broad_phase", "--elements 40 80 --repeat 1"),
    Benchmark("build_lod", "--points 3000 --repeat 1 --max-points 500"),
    Benchmark("build_lod_end_to_end", "{cloud} --repeat 1", slow=True),
    Benchmark("build_lod_quality", "--points 2000", slow=True),
    Benchmark("check_ids", "{house} --repeat 1", slow=True),
    Benchmark("classify_ground", "--points 3000 --repeat 1 --samples {folder}"),
    Benchmark("classify_noise", "--points 2000 --repeat 1"),
    Benchmark("cluster", "overhead --tiles 2", "overhead", slow=True),
    Benchmark("cluster", "driver --tiles 20", "driver --tiles 10000"),
    Benchmark("cluster", "survey --tiles 1", "survey --tiles 8", ray=True),
    Benchmark("cluster_grids", "--side 70 --tile 35 --workers 1", slow=True),
    Benchmark("cluster_ground", "{folder} --side 60 --tile 30", "{folder}"),
    Benchmark("cold_start", slow=True),
    Benchmark("detect_planes", "--sizes 3000 --repeat 1", "--sizes 100000 1000000 10000000"),
    Benchmark("deviation", "--points 2000 --repeat 1"),
    Benchmark("direction", "--elements 20 --repeat 1 --no-rival"),
    Benchmark("distance", "{house} --copies 1 --repeat 1"),
    Benchmark("export_ifc", "{house} --sizes 2", slow=True),
    Benchmark("first_calls", "--functions owm_ground --points 1000 --more 2000 --repeat 1",
              slow=True),
    Benchmark("gpus", "--parts cpu-jobs --job-points 2000 --workers 1", "--parts cpu-jobs",
              slow=True),
    Benchmark("ground_accuracy", "--data {one}", "--data {data}/lidar",
              data="lidar/isprs_samp41.laz"),
    Benchmark("ground_surface", "--points 300 --side 30 --repeat 1"),
    Benchmark("ifc_selectors", "{house}", "{house}", slow=True),
    Benchmark("interrupt", "owm_ground --points 2000 --side 80 --elements 30", process=SIGNALS,
              slow=True),
    Benchmark("interrupt_commands", "info --points 2000 --side 100 --moments 1", slow=True),
    Benchmark("intersects_with", "{house} --repeat 1", slow=True),
    Benchmark("intersects_with_accuracy", "--pairs 3 --data {folder}", slow=True),
    Benchmark("large_clouds", "run {tiles} owm_ground --memory 1GB", "run {tiles}", slow=True),
    Benchmark("lod_compact", "{cloud}", "{cloud}"),
    Benchmark("lod_export", "{cloud} --commit none", "{cloud} --commit none"),
    Benchmark("model_alignment", "--federations 1 --data {data}/ifc", "--data {data}/ifc",
              data="ifc/Schependomlaan_ROOT-staal.ifczip", slow=True),
    Benchmark("neighbours", "--points 2000 --repeat 1"),
    Benchmark("owm_ground", "tiny --repeat 1"),
    Benchmark("clash_revisions", "--models 2 --moved 1 --data {data}/ifc", "--data {data}/ifc",
              data="ifc/Schependomlaan_ROOT-staal.ifczip", slow=True),
    Benchmark("contours", "--side 80 --repeat 1"),
    Benchmark("coverage", "--rooms 1 --seeds 1 --beams 20000", "--seeds 11 12 13 14", slow=True),
    Benchmark("papers", "owm --points 3000 --repeat 1", "owm --small"),
    Benchmark("papers", "lod --points 2000 --repeat 1", "lod --small", slow=True),
    Benchmark("papers", "pops --side 80 --grids 2 --cells 120 --repeat 1", "pops --small",
              slow=True),
    Benchmark("papers", "planes --points 3000 --scenes box --repeat 1", "planes --small",
              slow=True),
    Benchmark("papers", "ql4bim --models {house} --repeat 1", "ql4bim", slow=True),
    Benchmark("two_grids", "--side 40 --repeat 1"),
    Benchmark("unmodelled", "--things 3 --beams 5000"),
    Benchmark("pins", "--points 2000 --elements 100 --repeat 1"),
    Benchmark("plane_elements", "{house} --points 3000 --repeat 1"),
    Benchmark("plane_nodes", "--points 3000 --repeat 1"),
    Benchmark("plane_peaks", "--points 3000 --repeat 1"),
    Benchmark("plane_points", "--points 3000 --repeat 1"),
    Benchmark("plane_flatness", "--data {one}", data="indoor/caixa3.laz", slow=True),
    Benchmark("plane_quality", "--points 3000 --only box --methods detect_planes", slow=True),
    Benchmark("plane_roofs", "--densities 1 --seeds 7"),
    Benchmark("plane_scans", "--data {one}", "--data {data}/indoor",
              data="indoor/caixa3.laz", slow=True),
    Benchmark("point_elements", "--points 300 --elements 5 --repeat 1"),
    Benchmark("point_features", "--points 2000 --repeat 1"),
    Benchmark("cloud_distance", "--points 2000 --repeat 1"),
    Benchmark("points_within", "--points 3000 --polygons 20 --repeat 1"),
    Benchmark("pops_end_to_end", "--side 80 --repeat 1", "--side 5000"),
    Benchmark("pops_features", "--side 80 --repeat 1"),
    Benchmark("pops_patches", "--side 80 --repeat 1"),
    Benchmark("ql4bim", "--lines 20 --repeat 1", slow=True),
    Benchmark("query_builder", "--points 2000 --repeat 1", slow=True),
    Benchmark("rates", "--functions owm_ground --devices cpu --sizes 1000 --seconds 1 "
              "--out {folder}/rates.json", "--out {folder}/rates.json", slow=True),
    Benchmark("read_ifc", "{house}", slow=True),
    Benchmark("read_las", "--points 2000 --rounds 1", slow=True),
    Benchmark("read_points", "--points 1000 --rounds 1", slow=True),
    Benchmark("registration", "{house} --poses 1 --beams 20000", "{house} --poses 20", slow=True),
    Benchmark("regret", "--functions owm_ground --sizes 1000 --cold-sizes --rounds 1 --seconds 1",
              slow=True),
    Benchmark("reproject", "--points 1000 --rounds 1"),
    Benchmark("run_overhead", "owm_ground --points 1000 --device cpu --repeat 1", slow=True),
    Benchmark("serve", "--points 2000 --repeat 1 --no-browser"),
    Benchmark("small_calls", "owm_ground --points 100 --groups 3 --repeat 1 --processes 1",
              slow=True),
    Benchmark("sql_transport", "--points 2000 --functions owm_ground --repeat 1 --devices cpu",
              "--lists"),
    Benchmark("terrain_derivatives", "--side 80 --repeat 1"),
    Benchmark("thin", "--points 2000 --repeat 1"),
    Benchmark("threads", "owm_ground --scale 0.001 --repeat 1"),
    Benchmark("tiles_export", "{cloud}"),
    Benchmark("triangulation", "200"),
    Benchmark("write_points", "--points 1000 --rounds 1", slow=True),
    Benchmark("build_lod_gpu", "--sizes 3000 --check 3000 --columns 3000 --repeat 1", gpu=True),
    Benchmark("classify_ground_gpu", "tiny --repeat 1", gpu=True, slow=True),
    Benchmark("detect_planes_gpu", "--sizes 800 --repeat 1", gpu=True, slow=True),
    Benchmark("deviation_gpu", "{house} --copies 1 --points 2000 --check 2000 --repeat 1",
              "{house}", gpu=True),
    Benchmark("elements_gpu", "{house} --copies 1 --repeat 1", "{house}", gpu=True,
              slow=True),
    Benchmark("first_calls_gpu", gpu=True,
              not_on_host="it starts processes, in which nothing stands in for a GPU"),
    Benchmark("gpu_tiles", "--points 2000 --kinds tiny --functions owm_ground --repeat 1",
              gpu=True),
    Benchmark("gpus", "--parts call tiles --points 8000 --cells 51200 --elements 8 --rounds 1",
              "--parts call tiles gpu-jobs", gpu=True,
              not_on_host="it asks which GPUs there are, and runs on each of them"),
    Benchmark("ground_surface_gpu", "--kinds tiny --cloud 2000 --points 300 --side 20 --repeat 1",
              gpu=True),
    Benchmark("laz_gpu", "--once 400 --points 800 --most 1200 --chunk-sizes 200 100 --lanes 1 4 "
              "--repeat 1", gpu=True, slow=True),
    Benchmark("owm_ground_gpu", "tiny", gpu=True),
    Benchmark("penetration_gpu", "{house} --copies 1 --cells 0 2 --repeat 1", "{house}", gpu=True,
              slow=True),
    Benchmark("neighbours_gpu", "--points 3000 --check 2000 --repeat 1", gpu=True, slow=True),
    Benchmark("points_within_gpu", "--points 3000 --polygons 20 --check 2000 --repeat 1", gpu=True),
    Benchmark("pops_features_gpu", "--side 80 --cpu-side 80 --patches-side 80", gpu=True,
              slow=True),
]  # fmt: skip


def arguments(each: Benchmark, text: str, folder: Path, points: int) -> list[str]:
    """Fill in arguments of a benchmark, and make the files that they name."""
    names = {"data": str(DATA), "folder": str(folder / "folder")}
    if "{house}" in text:
        from spatialq.demo.house import write_house

        names["house"] = str(folder / "house.ifc")
        write_house(Path(names["house"]))
    if "{cloud}" in text:
        from tiles_export import write_cloud

        names["cloud"] = str(folder / "cloud.laz")
        write_cloud(Path(names["cloud"]), points)
    if "{tiles}" in text:
        from large_clouds import make

        names["tiles"] = str(folder / "tiles")
        make(Path(names["tiles"]), points, max(1, points // 4))
    if "{one}" in text:
        names["one"] = str(folder / "one")
        Path(names["one"]).mkdir()
        (folder / "one" / Path(each.data).name).symlink_to(DATA / each.data)
    Path(names["folder"]).mkdir()
    return text.format(**names).split()
