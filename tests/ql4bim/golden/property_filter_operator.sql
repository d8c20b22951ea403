WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model WHERE global_id IN (SELECT prop.global_id FROM read_ifc_properties('house.ifc') AS prop WHERE prop.property = 'FireRating' AND (prop.value = 'F90' OR starts_with(prop.value, '[') AND contains(prop.value, '"F90"')))
