WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model WHERE regexp_matches(name, '^(front|bath)') AND TRY_CAST(attributes -> '$.OverallHeight' AS DOUBLE) >= 2000
