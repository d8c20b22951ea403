WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model
WHERE round(TRY_CAST(attributes -> '$.OverallHeight' AS DOUBLE)
    * (SELECT unit.length_unit_metres FROM read_ifc_models('house.ifc') AS unit WHERE unit.file_name = model.file_name), 6) > 2.1
