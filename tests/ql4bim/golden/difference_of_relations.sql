WITH model AS (
    FROM read_ifc_objects('house.ifc')
    LEFT JOIN (SELECT file_name, step_id, mesh FROM read_ifc('house.ifc'))
    USING (file_name, step_id)
),
walls AS (
    FROM model WHERE is_a(ifc_class, 'IfcWall')
),
slabs AS (
    FROM model WHERE is_a(ifc_class, 'IfcSlab')
),
a AS (
    SELECT a AS x, b AS y FROM touches('walls', 'slabs')
),
b AS (
    SELECT a AS x, b AS y FROM overlaps_with('walls', 'slabs')
)
FROM (FROM a EXCEPT FROM b)
