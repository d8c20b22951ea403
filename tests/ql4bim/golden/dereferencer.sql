WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
SELECT obj.global_id AS object, TRY_CAST(obj.attributes -> '$.OverallHeight' AS DOUBLE) AS height
FROM model AS obj WHERE TRY_CAST(obj.attributes -> '$.OverallHeight' AS DOUBLE) IS NOT NULL
