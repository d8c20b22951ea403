WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model WHERE predefined_type IS NOT NULL AND tag IS NULL
