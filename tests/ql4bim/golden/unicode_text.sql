WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model WHERE name <> 'Öffnung "süd" 壁'
