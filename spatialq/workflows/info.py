"""What a file holds, without decoding it."""

from pathlib import Path
from typing import Any

from spatialq.database.loading import kind_of, open_source
from spatialq.io import crs


def describe(path: Path) -> dict[str, Any]:
    """Describe a point cloud, grid or building model.

    Returns
    -------
    dict
        For people and JSON alike: path, kind and warnings; rows, extent, crs and columns; for a
        model its schema, length unit and georeference, and how many objects, products with
        geometry, relations and properties it has.

    Raises
    ------
    FileError
        If the file cannot be read.
    """
    kind = kind_of("info", path)
    if kind == "ifc":
        import pyarrow.compute as pc

        from spatialq.io.ifc.cache import read_models

        (model,) = read_models([path], geometry="none")
        return {
            "path": str(path),
            "kind": kind,
            "schema": model.schema,
            "length unit": model.length_unit,
            "georeference": model.georeference,
            "objects": model.tables["objects"].num_rows,
            "products with geometry": pc.sum(model.tables["objects"]["has_geometry"]).as_py() or 0,
            "relations": model.tables["relations"].num_rows,
            "properties": model.tables["properties"].num_rows,
            "warnings": "; ".join(model.warnings) or None,
        }
    source = open_source(path, kind)
    box = source.box
    return {
        "path": str(path),
        "kind": kind,
        "rows": source.rows,
        "xmin ymin xmax ymax": None if box is None else [box[k] for k in (0, 1, 3, 4)],
        "crs": crs.name(source.crs),
        "columns": ", ".join(source.schema.names),
        "warnings": "; ".join(source.warnings) or None,
    }
