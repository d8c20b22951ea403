"""The macros of topological relations: compositions of the one kernel."""

from spatialq.functions.declaration import parameters_of
from spatialq.functions.element_macros import MESHES, RELATED, SETS, TWO_SETS, WITHOUT_RELATED
from spatialq.functions.macros import DEVICE, Macro, arguments_of, indent, struct

from . import DECLARATION, RELATIONS, Options

PARAMETERS = parameters_of(Options)
OWN = ("tolerance", "method", "broad_phase")
CHOSEN = arguments_of(PARAMETERS, *OWN)
TOLERANCE = arguments_of(PARAMETERS, "tolerance")


def of_sets(name: str, columns: str, **fixed: object) -> str:
    """Write the query that runs the kernel on two tables."""
    options = indent(struct(PARAMETERS, OWN, **fixed), 2)
    return f"""SELECT {columns}
FROM query(
    spatialq_intersects_with_sql(
        '{name}', a::VARCHAR, b::VARCHAR,
        to_json({options})
    )
) AS p
{WITHOUT_RELATED}"""


def of_meshes(field: str, **fixed: object) -> str:
    """Write the expression that asks the kernel about two meshes."""
    options = indent(struct(PARAMETERS, ("tolerance",), **fixed, device="cpu"))
    return f"spatialq_intersects_with_of_meshes(\n    one, other,\n    {options}\n).{field}"


def _one_relation(name: str, relation: str, summary: str, example: str) -> Macro:
    return Macro(
        name,
        summary,
        (*TWO_SETS, *TOLERANCE, DEVICE),
        "SELECT p.* FROM spatial_relations(a, b, tolerance := tolerance, device := device) AS p\n"
        f"WHERE p.relation = '{relation}'",
        (f"FROM {name}({example})",),
        "the columns of spatial_relations",
    )


def _predicate(name: str, relation: str) -> Macro:
    return Macro(
        name,
        f"Whether the relation of one mesh to the other is '{relation}': see mesh_relation.",
        (*MESHES, *TOLERANCE),
        f"mesh_relation(one, other, tolerance := tolerance) = '{relation}'",
        (f"SELECT {name}(a.mesh, b.mesh) FROM walls AS a, slabs AS b",),
        is_table=False,
    )


PREDICATES = {
    "disjoint": "mesh_disjoint", "touch": "mesh_touches", "overlap": "mesh_overlaps",
    "contains": "mesh_contains", "inside": "mesh_inside", "covers": "mesh_covers",
    "covered_by": "mesh_covered_by", "equals": "mesh_equals",
}  # fmt: skip

MACROS = (
    Macro(
        "intersects_with",
        DECLARATION.outputs[0].summary,
        (*SETS, *CHOSEN, *RELATED, DEVICE),
        of_sets("intersects_with", "p.* EXCLUDE (distance)", relations=False),
        ("FROM intersects_with('ducts', 'beams', tolerance := 0.002) ORDER BY depth DESC",),
        "a b relation depth x y z flags: GlobalIds; overlap, contains, inside, covers, covered_by "
        "or equals; metres; a point in the common interior; what is odd, such as 'a_open'",
    ),
    Macro(
        "spatial_relations",
        "The relation of all pairs of elements that are not disjoint.",
        (*SETS, *CHOSEN, *RELATED, DEVICE),
        of_sets("spatial_relations", "p.*", relations=True),
        ("SELECT relation, count(*) FROM spatial_relations('elements') GROUP BY relation",),
        "a b relation depth distance x y z flags: the relation of a to b, touch included, and the "
        "distance of the surfaces",
    ),
    _one_relation(
        "touches",
        "touch",
        "The pairs of which a touches b: they are in contact, and have no common interior.",
        "'walls', 'slabs'",
    ),
    _one_relation(
        "overlaps_with",
        "overlap",
        "The pairs of which a and b overlap: they have a common interior, and each has a part "
        "outside the other. (OVERLAPS is a word of SQL.)",
        "'ducts', 'beams'",
    ),
    _one_relation(
        "contains_element",
        "contains",
        "The pairs of which b lies inside a, without contact with its surface. (contains is a "
        "function of DuckDB.)",
        "'spaces', 'furniture'",
    ),
    _one_relation(
        "inside",
        "inside",
        "The pairs of which a lies inside b, without contact with its surface.",
        "'furniture', 'spaces'",
    ),
    _one_relation(
        "covers",
        "covers",
        "The pairs of which b lies inside a, in contact with its surface.",
        "'spaces', 'furniture'",
    ),
    _one_relation(
        "covered_by",
        "covered_by",
        "The pairs of which a lies inside b, in contact with its surface.",
        "'furniture', 'spaces'",
    ),
    _one_relation(
        "equals", "equals", "The pairs of which a and b are the same body.", "'old', 'new'"
    ),
    Macro(
        "disjoint",
        "The pairs that are disjoint: of all pairs of a and b, those without any other relation.",
        (*TWO_SETS, *TOLERANCE, DEVICE),
        """SELECT x.global_id AS a, y.global_id AS b
FROM spatial_elements(a) AS x JOIN spatial_elements(b) AS y ON x.identity <> y.identity
ANTI JOIN spatial_relations(a, b, tolerance := tolerance, device := device) AS p
ON p.a IS NOT DISTINCT FROM x.global_id AND p.b IS NOT DISTINCT FROM y.global_id""",
        ("SELECT count(*) FROM disjoint('ducts', 'beams')",),
        "a b",
    ),
    Macro(
        "mesh_relation",
        "The relation of two meshes: disjoint, touch, overlap, contains, inside, covers, "
        "covered_by or equals; NULL where one of them is NULL. For many pairs of one table use "
        "spatial_relations.",
        (*MESHES, *TOLERANCE),
        of_meshes("relation", relations=True),
        ("SELECT mesh_relation(w.mesh, s.mesh) FROM walls AS w JOIN slabs AS s USING (storey)",),
        is_table=False,
    ),
    Macro(
        "intersects",
        "Whether two meshes have a common interior.",
        (*MESHES, *TOLERANCE),
        of_meshes("found", relations=False),
        ("SELECT d.name FROM ducts AS d JOIN beams AS b ON intersects(d.mesh, b.mesh)",),
        is_table=False,
    ),
    *(_predicate(PREDICATES[relation], relation) for relation in RELATIONS),
    Macro(
        "ST_3DIntersects",
        "Whether two meshes meet, as PostGIS names it: any contact, not only of the interiors.",
        MESHES,
        "mesh_relation(one, other) <> 'disjoint'",
        ("SELECT ST_3DIntersects(a.mesh, b.mesh) FROM walls AS a, slabs AS b",),
        is_table=False,
    ),
)
