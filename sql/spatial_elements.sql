-- Whether spatial operators ignore elements of a class by default, since they are no bodies:
-- spaces, openings, annotations and the like.
-- ifc_class: A class such as 'IfcWall'; NULL is not ignored.
-- example: SELECT name FROM elements WHERE NOT is_no_body(ifc_class)
CREATE OR REPLACE MACRO is_no_body(ifc_class) AS coalesce(
    spatialq_text('is_no_body: ifc_class must be text, got ', ifc_class) IN (
        -- spatial structure
        'IfcSite', 'IfcBuilding', 'IfcBuildingStorey', 'IfcSpace', 'IfcSpatialZone',
        'IfcExternalSpatialElement', 'IfcFacility', 'IfcBridge', 'IfcRoad', 'IfcRailway',
        'IfcMarineFacility', 'IfcFacilityPartCommon', 'IfcBridgePart', 'IfcRoadPart',
        'IfcRailwayPart', 'IfcMarinePart',
        -- IfcFeatureElement: what is cut out of elements, or is a part of them already
        'IfcOpeningElement', 'IfcOpeningStandardCase', 'IfcVoidingFeature', 'IfcEarthworksCut',
        'IfcEdgeFeature', 'IfcChamferEdgeFeature', 'IfcRoundedEdgeFeature',
        'IfcProjectionElement', 'IfcSurfaceFeature',
        -- signs, references, analysis
        'IfcVirtualElement', 'IfcAnnotation', 'IfcGrid', 'IfcReferent', 'IfcAlignment',
        'IfcLinearPositioningElement', 'IfcDistributionPort', 'IfcStructuralCurveMember',
        'IfcStructuralCurveMemberVarying', 'IfcStructuralSurfaceMember',
        'IfcStructuralSurfaceMemberVarying', 'IfcStructuralCurveConnection',
        'IfcStructuralPointConnection', 'IfcStructuralSurfaceConnection'
    ),
    false
);

-- What spatial_elements gives, for whichever macro was given the table.
-- place: The macro and its argument, such as 'intersects_with: a'.
-- elements: The argument.
-- example: FROM spatialq_elements('intersects_with: a', 'elements')
CREATE OR REPLACE MACRO spatialq_elements(place, elements) AS TABLE
WITH whole AS NOT MATERIALIZED (
    FROM query(spatialq_rows_sql(
        place,
        spatialq_name(place || ' must be the name of a table, got ', elements),
        ['global_id', 'mesh']
    ))
    UNION ALL BY NAME
    SELECT NULL::VARCHAR AS ifc_class, NULL::VARCHAR AS file_name, NULL::BIGINT AS step_id
    WHERE false
)
SELECT e.global_id, hash(e.global_id, e.file_name, e.step_id) AS identity, e.mesh
FROM whole AS e
WHERE len(e.mesh.faces) > 0
AND (NOT is_no_body(e.ifc_class) OR (SELECT bool_and(is_no_body(w.ifc_class)) FROM whole AS w));

-- The elements of a table that spatial operators consider: those that have a mesh with triangles
-- and are bodies, or all where none is a body, so that a view of spaces can be used as well.
-- elements: Name of a table or view with global_id and mesh, as read_ifc and load give them;
--     ifc_class, file_name and step_id are used if they are present.
-- gives: global_id identity mesh; two rows with one identity are the same element of the same file
-- example: SELECT count(*) FROM spatial_elements('elements')
CREATE OR REPLACE MACRO spatial_elements(elements) AS TABLE
FROM spatialq_elements('spatial_elements: elements', elements);

-- The pairs of elements that belong together, so that they may be meant to meet, and the rule that
-- says so: 'openings', an element, its openings, what fills these, and its additions; 'coverings', a
-- covering and what it covers; 'assemblies', a whole and its parts, and the parts of one whole;
-- 'connections', what IfcRelConnects or ports join; 'systems', members of one system.
-- relations: Name of a table, as read_ifc_relations and load give them.
-- gives: a b rule, each pair in both orders, once for each rule
-- example: SELECT rule, count(*) FROM related_elements('relations') GROUP BY rule
CREATE OR REPLACE MACRO related_elements(relations) AS TABLE
WITH RECURSIVE related AS NOT MATERIALIZED (
    FROM query(spatialq_rows_sql(
        'related_elements: relations',
        spatialq_name('related_elements: relations must be the name of a table, got ', relations),
        ['child', 'parent', 'parent_class', 'kind']
    ))
),
part_of AS (
    SELECT r.child AS part, r.parent AS whole FROM related AS r
    WHERE r.kind IN ('aggregates', 'nests') AND r.parent_class <> 'IfcProject'
    AND NOT is_no_body(r.parent_class)
),
below AS (
    SELECT p.whole AS part, p.whole FROM part_of AS p
    UNION
    SELECT p.part, b.whole FROM below AS b JOIN part_of AS p ON p.whole = b.part
),
members AS (
    SELECT r.child AS member, r.parent AS system FROM related AS r
    WHERE r.kind = 'assigned_to_system' AND r.parent_class <> 'IfcZone'
),
pairs AS (
    SELECT r.child AS one, r.parent AS other, 'openings' AS rule FROM related AS r
    WHERE r.kind IN ('voids', 'fills', 'projects', 'adheres_to')
    UNION ALL
    SELECT f.child, v.parent, 'openings' FROM related AS f JOIN related AS v ON v.child = f.parent
    WHERE f.kind = 'fills' AND v.kind = 'voids'
    UNION ALL
    SELECT r.child, r.parent, 'coverings' FROM related AS r WHERE r.kind = 'covers'
    UNION ALL
    SELECT x.part, y.part, 'assemblies' FROM below AS x JOIN below AS y ON y.whole = x.whole
    UNION ALL
    SELECT r.child, r.parent, 'connections' FROM related AS r
    WHERE r.kind IN ('connects', 'realizes_connection')
    UNION ALL
    SELECT p.parent, q.parent, 'connections' FROM related AS c
    JOIN related AS p ON p.child = c.child AND p.kind IN ('port_of', 'nests')
    JOIN related AS q ON q.child = c.parent AND q.kind IN ('port_of', 'nests')
    WHERE c.kind = 'connects_ports'
    UNION ALL
    SELECT x.member, y.member, 'systems' FROM members AS x JOIN members AS y USING (system)
)
SELECT p.one AS a, p.other AS b, p.rule FROM pairs AS p WHERE p.one <> p.other
UNION
SELECT p.other, p.one, p.rule FROM pairs AS p WHERE p.one <> p.other;
