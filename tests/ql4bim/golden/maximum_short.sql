WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model WHERE TRY_CAST(attributes -> '$.Elevation' AS DOUBLE) IS NOT NULL QUALIFY rank() OVER (ORDER BY TRY_CAST(attributes -> '$.Elevation' AS DOUBLE) DESC) = 1
