"""The macro that compares models."""

from spatialq.functions.macros import Argument, Macro, rows_of

MACROS = (
    Macro(
        "model_alignment",
        "Whether models lie where they should to each other: for each pair of files the shift and "
        "turn that bring most faces of both into common planes.",
        (
            Argument(
                "elements",
                "Name of a table or view with mesh, file_name and ifc_class, as read_ifc and load "
                "give them. Spaces, openings and the like are not considered.",
                rows="Elements",
            ),
        ),
        f"""SELECT unnest(spatialq_model_alignments(list({{
    file_name: e.file_name,
    mesh: e.mesh
}})), max_depth := 2)
FROM (
    FROM {rows_of("model_alignment", "elements", "file_name", "mesh")}
    UNION ALL BY NAME
    SELECT NULL::VARCHAR AS ifc_class WHERE false
) AS e
WHERE e.file_name IS NOT NULL AND len(e.mesh.faces) > 0 AND NOT is_no_body(e.ifc_class)""",
        ("FROM model_alignment('elements') WHERE verdict <> 'fits'",),
        "a_file b_file verdict: 'fits', 'misplaced', or 'unknown' where they share too little; "
        "dx dy dz turn: metres and degrees, counter-clockwise seen from above, by which b_file "
        "fits a_file when it is turned about the z-axis through the origin and then moved; "
        "agreeing agreeing_unmoved: elements with a vertical face in a plane of the other model, "
        "then and as it is; a_elements b_elements: of how many; a_extent b_extent: lowest and "
        "highest x y z; sentence: where the one that is misplaced lies",
    ),
)
