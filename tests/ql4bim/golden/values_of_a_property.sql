WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
SELECT prop.global_id AS wall, prop.value AS length FROM read_ifc_properties('house.ifc') AS prop SEMI JOIN model ON prop.global_id = model.global_id WHERE prop.pset = 'Qto_WallBaseQuantities' AND prop.property = 'Length'
