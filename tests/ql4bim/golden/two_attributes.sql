WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model
WHERE coalesce(
    TRY_CAST(attributes -> '$.OverallHeight' AS DOUBLE) > TRY_CAST(attributes -> '$.OverallWidth' AS DOUBLE),
    (attributes ->> '$.OverallHeight') > (attributes ->> '$.OverallWidth')
)
