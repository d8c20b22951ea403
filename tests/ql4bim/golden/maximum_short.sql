WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model
WHERE TRY_CAST(attributes -> '$.Elevation' AS DOUBLE)
    = (SELECT max(TRY_CAST(attributes -> '$.Elevation' AS DOUBLE)) FROM model)
