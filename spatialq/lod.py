"""From point cloud files to their levels of detail: the table of nodes, a picture."""

import json
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cloud_file import Progress
from spatialq.errors import FileError, FileWarning

COMMAND = "lod"
FUNCTION = "build_lod"
TABLE = (".parquet",)
PICTURE = (".png",)
ENDINGS = (*TABLE, *PICTURE)
GROUP_SAMPLES = 1 << 18
"""Of a row group of the file: a viewer that wants a node reads no more than these."""


def write_lod(
    source: str | Path | Sequence[str | Path],
    outputs: str | Path | Sequence[str | Path] = (),
    *,
    crs: str | None = None,
    device: str = "auto",
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Build the level-of-detail tree of a cloud and write it.

    Parameters
    ----------
    source : path or paths
        LAS, LAZ or COPC files, or patterns of them: together one cloud, whose `point_id` runs on
        from file to file as in a table that `load` made.
    outputs : path or paths
        By their endings: .parquet the table that `build_lod` gives, nodes of a level together,
        with the CRS (PROJJSON) and the options as metadata `crs` and `build_lod`; .png a picture
        of the cloud at three levels of detail.
    crs : str, optional
        Of sources that do not say or say wrong: PROJJSON, WKT, or a code such as EPSG:25832.
    device : 'auto', 'cpu' or 'gpu'
    progress : callable, optional
        Called with file, rows so far and rows in all.
    **options
        Options of `build_lod`.

    Returns
    -------
    dict
        points, nodes, levels, leaves, inner_nodes, voxels, device, seconds, outputs.

    Raises
    ------
    FileError
        If a source cannot be read, or an output not be written.
    CrsError
        If the sources are in different coordinate reference systems.
    ValueError
        If an option or the ending of an output is wrong.

    Warns
    -----
    FileWarning
        If x and y are degrees; and about each oddity of a file that is read all the same.
    """
    from spatialq.bridge_cloud import read_clouds
    from spatialq.call import call
    from spatialq.export.atomic import require_outputs
    from spatialq.io import crs as crs_text
    from spatialq.io.files import find_files, warn_about
    from spatialq.io.las import open_las
    from spatialq.loading import kind_of
    from spatialq.udf import catalog

    began = time.perf_counter()
    sources = [source] if isinstance(source, str | Path) else source
    paths = [path for each in sources for path in find_files(COMMAND, each)]
    targets = [Path(each) for each in ([outputs] if isinstance(outputs, str | Path) else outputs)]
    udf = catalog()[FUNCTION]
    chosen = udf.choose(options)  # refused before the work is done
    for path in paths:
        require_outputs(COMMAND, path, targets, ENDINGS)
        if kind_of(COMMAND, path) != "las":
            raise FileError.of(COMMAND, path, "is no point cloud: LAS, LAZ or COPC")
    clouds = [open_las(path) for path in paths]
    if crs is not None:
        crs = crs_text.from_text(crs)
    else:
        crs = crs_text.require_same(COMMAND, ((cloud.path, cloud.crs) for cloud in clouds))
    for cloud in clouds:
        warn_about(COMMAND, cloud)
    if crs is not None and crs_text.metres_per_unit(crs) is None:
        message = (
            f"{COMMAND}: '{paths[0]}' is in {crs_text.name(crs)}, which is not projected: its "
            "voxels are no cubes in space; reproject it first, or give the right crs"
        )
        warnings.warn(message, FileWarning, stacklevel=2)
    columns = read_clouds(udf, clouds, progress)
    nodes, used = call(udf, columns, chosen, device)
    for target in targets:
        if target.suffix.lower() in TABLE:
            known = {"crs": crs, FUNCTION: json.dumps(asdict(chosen))}
            _write_table(nodes, {name: text for name, text in known.items() if text}, target)
        else:
            from spatialq.export.lod_picture import write_lod_picture

            names = paths[0].name if len(paths) == 1 else f"{len(paths)} files"
            write_lod_picture(target, nodes, f"Levels of detail of {names}")
    leaves = nodes["is_leaf"]
    return {
        "points": columns["x"].size,
        "nodes": leaves.size,
        "levels": int(nodes["level"].max(initial=-1)) + 1,
        "leaves": int(np.count_nonzero(leaves)),
        "inner_nodes": int(np.count_nonzero(~leaves)),
        "voxels": int(nodes["count"][~leaves].sum()),
        "device": used,
        "seconds": time.perf_counter() - began,
        "outputs": [str(target) for target in targets],
    }


def _write_table(nodes: Mapping[str, Any], known: Mapping[str, str], target: Path) -> None:
    """Write nodes in row groups of few samples; what is known of all goes with the schema."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from spatialq.bridge import structs
    from spatialq.export.atomic import whole
    from spatialq.udf import catalog

    table = pa.Table.from_struct_array(structs(catalog()[FUNCTION], nodes))
    table = table.replace_schema_metadata(known)
    ends = np.cumsum(nodes["count"])
    with (
        whole(target) as partial,
        pq.ParquetWriter(
            partial,
            table.schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=False,  # few samples are alike
            write_statistics=[name for name in table.schema.names if name != "samples"],
        ) as writer,
    ):
        first = 0
        while first < table.num_rows:
            before = ends[first - 1] if first else 0
            stop = max(first + 1, int(np.searchsorted(ends, before + GROUP_SAMPLES, "right")))
            writer.write_table(table.slice(first, stop - first))
            first = stop
