WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model
WHERE (NOT coalesce(name = 'wall bath', false) AND NOT coalesce(tag IS NOT NULL, false))
AND is_a(ifc_class, 'IfcWall')
AND NOT coalesce(is_a(ifc_class, 'IfcWallStandardCase'), false)
