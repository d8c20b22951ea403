"""Rules of the quality of building models, each a query over the tables that `load` makes."""

from collections.abc import Sequence
from dataclasses import dataclass

from spatialq.database.frames import beside
from spatialq.database.model_tables import beside_elements
from spatialq.functions.sql_text import literal


@dataclass(frozen=True)
class Rule:
    """One rule.

    Parameters
    ----------
    name : str
        What is right, as a title.
    requirement : str
        What an object must be, as a sentence.
    sql : str
        A query over the tables `e` (elements), `o` (objects), `r` (relations), `m` (models) and `f`
        (load_errors) for `file_name step_id reason`; `step_id` is NULL for the model as a whole.
    """

    name: str
    requirement: str
    sql: str


PHYSICAL = (
    "is_a({0}.ifc_class, 'IfcElement') AND NOT is_a({0}.ifc_class, 'IfcFeatureElement') "
    "AND NOT is_a({0}.ifc_class, 'IfcVirtualElement')"
)
"""What is built; not openings."""
SAME = 0.001
"""Metres by which the boxes of equal elements differ at most."""
OFF = 0.5
"""Metres by which elements may lie above or below their storey."""
DEEP = 0.02
"""Metres by which spaces may reach into each other."""
LOST = 0.1
"""Metres by which an opening may lie beside what it voids."""

RULES: tuple[Rule, ...] = (
    Rule(
        "GlobalIds are unique",
        "an object has a GlobalId that no other object of the model has",
        """
        SELECT file_name, step_id, format(
            'it shares its GlobalId with {} other object{}, such as {} #{}', n - 1,
            CASE WHEN n > 2 THEN 's' ELSE '' END, other.ifc_class, other.step_id
        ) AS reason
        FROM (
            SELECT *, count(*) OVER same AS n, CASE WHEN row_number() OVER same = 1
                THEN nth_value({'ifc_class': ifc_class, 'step_id': step_id}, 2) OVER same
                ELSE first_value({'ifc_class': ifc_class, 'step_id': step_id}) OVER same
            END AS other
            FROM o WHERE global_id IS NOT NULL
            WINDOW same AS (
                PARTITION BY file_name, global_id ORDER BY step_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            )
        )
        WHERE n > 1
        """,
    ),
    Rule(
        "Elements are there once",
        "no other element of the class has the same body in the same place",
        f"""
        SELECT y.file_name, y.step_id, format(
            'it is the same body in the same place as {{}} #{{}}',
            coalesce(any_value(x.ifc_class || ' ' || x.name), any_value(x.ifc_class)),
            min(x.step_id)
        ) AS reason
        FROM e AS x JOIN e AS y ON x.file_name = y.file_name AND x.ifc_class = y.ifc_class
            AND x.step_id < y.step_id AND len(x.mesh.faces) = len(y.mesh.faces)
            AND abs(x.area - y.area) <= 1e-6 * x.area AND x.area > 0
            AND {
            " AND ".join(
                f"abs(x.{c} - y.{c}) <= {SAME}"
                for c in ("xmin", "ymin", "zmin", "xmax", "ymax", "zmax")
            )
        }
        WHERE NOT is_no_body(x.ifc_class) GROUP BY ALL
        """,
    ),
    Rule(
        "Elements are in a storey",
        "an element is in a storey or a part of it, in the site or in another place of its own",
        f"""
        SELECT o.file_name, o.step_id, CASE WHEN c.ifc_class IS NULL
            THEN 'it is in no place, such as a storey, and part of nothing that is in one'
            ELSE 'it is in the ' || c.ifc_class || coalesce(' ' || c.name, '')
            || ', and in none of its storeys' END AS reason
        FROM o
        LEFT JOIN o AS p ON p.file_name = o.file_name AND p.global_id = o.parent_id
        LEFT JOIN o AS c ON c.file_name = o.file_name
            AND c.global_id = coalesce(o.container_id, p.container_id)
        WHERE {PHYSICAL.format("o")} AND o.storey_id IS NULL
        AND o.file_name IN (SELECT s.file_name FROM o AS s WHERE s.ifc_class = 'IfcBuildingStorey')
        AND (c.ifc_class = 'IfcBuilding' OR (c.ifc_class IS NULL AND o.parent_id IS NULL))
        """,
    ),
    Rule(
        "Elements have geometry",
        "an element has a mesh, or parts that have one",
        f"""
        SELECT o.file_name, o.step_id, CASE WHEN any_value(o.has_geometry)
            THEN coalesce('its representation has no mesh: ' || min(f.message),
                'its representation has no faces')
            ELSE 'it has no representation and no parts that have one' END AS reason
        FROM o
        ANTI JOIN e ON e.file_name = o.file_name AND e.step_id = o.step_id
        ANTI JOIN (
            SELECT parts.file_name, parts.parent FROM r AS parts
            WHERE parts.kind IN ('aggregates', 'nests', 'voids')
        ) AS whole ON whole.file_name = o.file_name AND whole.parent = o.global_id
        LEFT JOIN f ON f.file_name = o.file_name AND f.global_id = o.global_id
        WHERE {PHYSICAL.format("o")} GROUP BY o.file_name, o.step_id
        """,
    ),
    Rule(
        "Elements are at the height of their storey",
        f"an element reaches to within {OFF} m of its storey's height",
        f"""
        WITH storeys AS (
            SELECT o.file_name, o.global_id, o.name, o.elevation, lead(o.elevation, 1, 'infinity')
                OVER (PARTITION BY o.file_name ORDER BY o.elevation) AS above, row_number()
                OVER (PARTITION BY o.file_name ORDER BY o.elevation) = 1 AS is_lowest
            FROM o WHERE o.ifc_class = 'IfcBuildingStorey' AND o.elevation IS NOT NULL
        ),
        placed AS (
            SELECT e.*, o.storey_id, s.name AS storey_name, s.elevation, s.above, s.is_lowest
            FROM e JOIN o ON o.file_name = e.file_name AND o.step_id = e.step_id
            JOIN storeys AS s ON s.file_name = o.file_name AND s.global_id = o.storey_id
            WHERE NOT is_no_body(e.ifc_class)
        ),
        known AS (  -- others have no elevation of their own, or coordinates from another height
            SELECT p.file_name, p.storey_id FROM placed AS p GROUP BY ALL
            HAVING median(p.zmin) - any_value(p.elevation) BETWEEN -1.5 AND 2.5
        )
        SELECT p.file_name, p.step_id, CASE WHEN p.zmin > p.above + {OFF}
            THEN format('it lies {{:.2f}} m above the storey that follows its storey {{}}',
                p.zmin - p.above, coalesce(p.storey_name, 'without a name'))
            ELSE format('it lies {{:.2f}} m below its storey {{}}',
                p.elevation - p.zmax, coalesce(p.storey_name, 'without a name')) END AS reason
        FROM placed AS p SEMI JOIN known AS k
            ON k.file_name = p.file_name AND k.storey_id = p.storey_id
        WHERE p.zmin > p.above + {OFF} OR (p.zmax < p.elevation - {OFF} AND NOT p.is_lowest)
        """,
    ),
    Rule(
        "Bodies are closed",
        "the mesh of an element encloses a volume",
        f"""
        SELECT e.file_name, e.step_id,
            'its mesh, made by ' || e.mesh_source || ', is open, so that it has no volume' AS reason
        FROM e WHERE {PHYSICAL.format("e")} AND NOT e.is_closed
        """,
    ),
    Rule(
        "Spaces do not overlap",
        f"a space reaches into no other one by more than {DEEP} m",
        f"""
        WITH spatialq_spaces AS (
            SELECT e.* REPLACE (e.file_name || '#' || e.step_id AS global_id)
            FROM e WHERE e.ifc_class = 'IfcSpace'
        )
        SELECT s.file_name, s.step_id, format('it reaches {{:.2f}} m into the space {{}} #{{}}',
            c.penetration, coalesce(x.name, 'without a name'), x.step_id) AS reason
        FROM intersects_with('spatialq_spaces', tolerance := {DEEP}) AS c
        JOIN spatialq_spaces AS s ON s.global_id = c.b
        JOIN spatialq_spaces AS x ON x.global_id = c.a AND x.file_name = s.file_name
        WHERE c.penetration > {DEEP} AND (s.file_name, s.step_id, x.step_id) NOT IN (
            SELECT (a.file_name, a.step_id, b.step_id) FROM o AS a JOIN o AS b
            ON a.file_name = b.file_name
            AND (a.parent_id = b.global_id OR b.parent_id = a.global_id)
            WHERE a.ifc_class = 'IfcSpace' AND b.ifc_class = 'IfcSpace'
        )
        """,
    ),
    Rule(
        "Openings void an element",
        f"an opening voids an element, and lies within {LOST} m of it",
        f"""
        WITH cut AS (
            SELECT o.file_name, o.step_id, o.global_id, v.parent FROM o
            LEFT JOIN r AS v ON v.file_name = o.file_name AND v.child = o.global_id
                AND v.kind = 'voids'
            WHERE is_a(o.ifc_class, 'IfcOpeningElement')
        )
        SELECT c.file_name, c.step_id, CASE WHEN any_value(c.parent) IS NULL
            THEN 'it voids no element'
            ELSE format('it lies {{:.2f}} m beside the {{}} that it voids', max(c.gap), max(c.host))
            END AS reason
        FROM (
            SELECT c.*, h.ifc_class || coalesce(' ' || h.name, '') AS host, greatest(
                {", ".join(f"v.{n}min - h.{n}max, h.{n}min - v.{n}max" for n in "xyz")}) AS gap
            FROM cut AS c
            LEFT JOIN e AS v ON v.file_name = c.file_name AND v.step_id = c.step_id
            LEFT JOIN e AS h ON h.file_name = c.file_name AND h.global_id = c.parent
        ) AS c
        WHERE c.parent IS NULL OR c.gap > {LOST} GROUP BY c.file_name, c.step_id
        """,
    ),
    Rule(
        "The length unit is stated and plausible",
        "the model states its unit of length, and is as large as buildings are",
        """
        WITH size AS (
            SELECT e.file_name, sqrt((max(e.xmax) - min(e.xmin)) ** 2
                + (max(e.ymax) - min(e.ymin)) ** 2 + (max(e.zmax) - min(e.zmin)) ** 2) AS metres
            FROM e WHERE NOT is_no_body(e.ifc_class) GROUP BY ALL
        )
        SELECT m.file_name, NULL AS step_id, CASE WHEN m.length_unit IS NULL
            THEN 'it states no unit of length'
            ELSE format('it is {:.3g} m from end to end, so that its unit {} is doubtful',
                s.metres, m.length_unit) END AS reason
        FROM m LEFT JOIN size AS s ON s.file_name = m.file_name
        WHERE m.length_unit IS NULL OR s.metres NOT BETWEEN 0.05 AND 20000
        """,
    ),
    Rule(
        "The place on the map is stated and plausible",
        "the model has a map conversion, with a coordinate reference system and a scale that fit",
        """
        SELECT m.file_name, NULL AS step_id, CASE
            WHEN m.eastings IS NULL THEN 'it has no map conversion'
            WHEN m.crs_name IS NULL THEN 'its map conversion names no coordinate reference system'
            WHEN m.eastings = 0 AND m.northings = 0 THEN 'its map conversion is to the origin'
            WHEN m.axis NOT BETWEEN 0.99 AND 1.01
                THEN format('the direction of its map conversion has the length {:.3g}', m.axis)
            ELSE format('the scale {:.6g} of its map conversion is not that of {} to metres',
                m.scale, m.length_unit) END AS reason
        FROM (SELECT *, sqrt(x_axis_abscissa ** 2 + x_axis_ordinate ** 2) AS axis FROM m) AS m
        WHERE m.eastings IS NULL OR m.crs_name IS NULL OR (m.eastings = 0 AND m.northings = 0)
        OR m.axis NOT BETWEEN 0.99 AND 1.01
        OR (m.scale IS NOT NULL AND coalesce(m.map_unit, 'METRE') = 'METRE'
            AND abs(m.scale / m.length_unit_metres - 1) > 0.01)
        """,
    ),
)


def quality_sql(elements: str) -> str:
    """Write the query for the findings of all rules in the tables of models."""
    beside("model_quality: elements", elements, "objects")
    return query_of(elements)


def query_of(elements: str, rules: Sequence[Rule] = RULES) -> str:
    """Write the query for the findings of rules: columns as of `check_ids` without `status`."""
    tables = {
        "e": elements,
        "o": beside_elements(elements, "objects"),
        "r": beside_elements(elements, "relations"),
        "m": beside_elements(elements, "models"),
        "f": "load_errors",
    }
    named = ",\n".join(
        f"{short} AS NOT MATERIALIZED (FROM query_table({literal(name)}))"
        for short, name in tables.items()
    )
    found = "\nUNION ALL\n".join(
        f"SELECT {k} AS rule_number, file_name, step_id, reason FROM ({rule.sql})"
        for k, rule in enumerate(rules, start=1)
    )
    names, requirements = (
        f"[{', '.join(literal(getattr(rule, each)) for rule in rules)}]"
        for each in ("name", "requirement")
    )
    return f"""
    WITH {named},
    found AS ({found})
    SELECT {names}[k.rule_number] AS rule, k.rule_number::INTEGER AS rule_number,
        {requirements}[k.rule_number] AS requirement, k.reason, x.ifc_class, x.name, x.global_id,
        k.step_id::BIGINT AS step_id, k.file_name
    FROM found AS k LEFT JOIN o AS x ON x.file_name = k.file_name AND x.step_id = k.step_id
    ORDER BY k.file_name, k.rule_number, k.step_id
    """
