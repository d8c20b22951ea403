WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model
WHERE TRY_CAST(attributes -> '$.OverallHeight' AS DOUBLE) > TRY_CAST(attributes -> '$.OverallWidth' AS DOUBLE)
