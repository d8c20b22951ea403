"""The macros of topological relations: compositions of the one kernel."""

from spatialq.functions.declaration import parameters_of
from spatialq.functions.element_macros import (
    MESHES,
    RELATED,
    SETS,
    TWO_SETS,
    all_pairs,
    of_meshes,
    of_sets,
    without_related,
)
from spatialq.functions.macros import CALL, Macro, arguments_of, struct

from . import DECLARATION, MEASURES, RELATIONS, Options

PARAMETERS = parameters_of(Options)
OWN = ("tolerance", "method", "broad_phase", "min_thickness", "volume")
CHOSEN = arguments_of(PARAMETERS, *OWN)
TOLERANCE = arguments_of(PARAMETERS, "tolerance")


def _of_sets(name: str, columns: str, **fixed: object) -> str:
    """Write the query that runs the kernel on two tables."""
    pairs = of_sets("intersects_with", name, struct(PARAMETERS, OWN, **fixed))
    return f"SELECT {columns}\nFROM {pairs}\n{without_related(name)}"


def _related(name: str) -> str:
    """Write the pairs with a relation, of a macro whose only parameter is the tolerance."""
    return of_sets("intersects_with", name, struct(PARAMETERS, ("tolerance",), relations=True))


def _of_meshes(name: str, field: str, *own: str, **fixed: object) -> str:
    """Write the expression that asks the kernel about two meshes."""
    options = struct(PARAMETERS, own, **fixed, device="cpu")
    return f"{of_meshes('intersects_with', name, options)}.{field}"


def _one_relation(name: str, relation: str, summary: str, example: str) -> Macro:
    return Macro(
        name,
        summary,
        (*TWO_SETS, *TOLERANCE, *CALL),
        f"SELECT p.* EXCLUDE ({', '.join(MEASURES)}) FROM {_related(name)}\n"
        f"WHERE p.relation = '{relation}'",
        (f"FROM {name}({example})",),
        "the columns of spatial_relations but volume dx dy dz",
    )


def _predicate(name: str, relation: str) -> Macro:
    return Macro(
        name,
        f"Whether the relation of one mesh to the other is '{relation}': see mesh_relation.",
        (*MESHES, *TOLERANCE),
        f"{_of_meshes(name, 'relation', 'tolerance', relations=True)} = '{relation}'",
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
        (*SETS, *CHOSEN, *RELATED, *CALL),
        _of_sets("intersects_with", "p.* EXCLUDE (distance)", relations=False),
        ("FROM intersects_with('ducts', 'beams', tolerance := 0.002) ORDER BY penetration DESC",),
        "a b relation penetration thickness volume dx dy dz x y z flags: GlobalIds; overlap, "
        "contains, inside, covers, covered_by or equals; how far they reach into each other, and "
        "the diameter of the largest ball in both, metres; NULL, or of the common part the volume, "
        "cubic metres, and the sides of its box, the longest first; a point in the common "
        "interior; what is odd, such as 'a_open'",
    ),
    Macro(
        "spatial_relations",
        "The relation of all pairs of elements that are not disjoint.",
        (*SETS, *CHOSEN, *RELATED, *CALL),
        _of_sets("spatial_relations", "p.*", relations=True),
        ("SELECT relation, count(*) FROM spatial_relations('elements') GROUP BY relation",),
        "a b relation penetration thickness volume dx dy dz distance x y z flags: the relation of "
        "a to b, touch included, and the distance of the surfaces",
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
        (*TWO_SETS, *TOLERANCE, *CALL),
        f"""SELECT x.global_id AS a, y.global_id AS b
FROM {all_pairs("disjoint")}
ANTI JOIN {_related("disjoint")}
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
        _of_meshes("mesh_relation", "relation", "tolerance", relations=True),
        ("SELECT mesh_relation(w.mesh, s.mesh) FROM walls AS w JOIN slabs AS s USING (storey)",),
        is_table=False,
    ),
    Macro(
        "intersects",
        "Whether two meshes have a common interior.",
        (*MESHES, *TOLERANCE),
        _of_meshes("intersects", "found", "tolerance", relations=False),
        ("SELECT d.name FROM ducts AS d JOIN beams AS b ON intersects(d.mesh, b.mesh)",),
        is_table=False,
    ),
    *(_predicate(PREDICATES[relation], relation) for relation in RELATIONS),
    Macro(
        "ST_3DIntersects",
        "Whether two meshes meet, as PostGIS names it: any contact, not only of the interiors.",
        MESHES,
        f"{_of_meshes('ST_3DIntersects', 'relation', relations=True)} <> 'disjoint'",
        ("SELECT ST_3DIntersects(a.mesh, b.mesh) FROM walls AS a, slabs AS b",),
        is_table=False,
    ),
)
