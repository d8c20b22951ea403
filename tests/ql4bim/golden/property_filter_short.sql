WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model WHERE global_id IN (SELECT prop.global_id FROM read_ifc_properties('house.ifc') AS prop WHERE prop.pset = 'Qto_WallBaseQuantities' AND prop.property = 'Length' AND round(prop.number_si, 6) > 5.0)
