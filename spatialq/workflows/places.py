"""Where building models lie, in their own coordinates and on the map."""

from typing import TYPE_CHECKING, Any

from spatialq.database.model_tables import beside_elements
from spatialq.functions.sql_text import identifier
from spatialq.io.ifc.columns import GEOREFERENCE
from spatialq.workflows.tables import dicts

if TYPE_CHECKING:
    import duckdb

EXTENT = ("xmin ymin xmax ymax", "zmin zmax")
PLACES = """
SELECT m.file_name AS path, coalesce(e.elements, 0) AS elements,
    e.across AS "xmin ymin xmax ymax", e.heights AS "zmin zmax",
    coalesce(s.storeys, []) AS storeys,
    CASE WHEN m.eastings IS NULL THEN NULL ELSE {{{georeference}}} END AS georeference
FROM {models} AS m
LEFT JOIN (
    SELECT file_name, count(*) AS elements,
        [min(xmin), min(ymin), max(xmax), max(ymax)] AS across, [min(zmin), max(zmax)] AS heights
    FROM {elements} GROUP BY file_name
) AS e USING (file_name)
LEFT JOIN (
    SELECT file_name,
        list({{name: name, elevation: elevation}} ORDER BY elevation, name) AS storeys
    FROM {objects} WHERE ifc_class = 'IfcBuildingStorey' GROUP BY file_name
) AS s USING (file_name)
ORDER BY m.file_name
"""


def places(con: "duckdb.DuckDBPyConnection", elements: str = "elements") -> list[dict[str, Any]]:
    """Say where each model of a table of elements and those beside it lies.

    Returns
    -------
    list of dict
        `path`; how many `elements` have a mesh; their extent, `xmin ymin xmax ymax` and `zmin
        zmax`, metres; `storeys`, with `name` and `elevation`; `georeference`, the map conversion.
    """
    tables = {
        name: identifier(beside_elements(elements, name))
        for name in ("elements", "objects", "models")
    }
    georeference = ", ".join(f"{name}: m.{name}" for name in GEOREFERENCE)
    return dicts(con.execute(PLACES.format(georeference=georeference, **tables)))


def readable(place: dict[str, Any]) -> dict[str, Any]:
    """Write extent, storeys and map conversion of a place as a person reads them."""
    said = place["georeference"]
    storeys = (
        f"{each['name'] or 'unnamed'}: {_metres(each['elevation'])}" for each in place["storeys"]
    )
    extent = {name: place[name] and [*map(_metres, place[name])] for name in EXTENT}
    return {
        **place,
        **{name: values and ", ".join(values) for name, values in extent.items()},
        "storeys": ", ".join(storeys),
        "georeference": said and ", ".join(f"{name}: {said[name]}" for name in said if said[name]),
    }


def _metres(value: float | None) -> str:
    # + 0.0 makes 0 of -0
    return "unknown" if value is None else f"{round(value, 3) + 0.0:.15g}"
