WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model WHERE (SELECT count(*) FROM model) > 5
