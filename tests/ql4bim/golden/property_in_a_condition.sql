WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model WHERE is_a(ifc_class, 'IfcWall') AND NOT coalesce(global_id IN (SELECT prop.global_id FROM read_ifc_properties('house.ifc') AS prop WHERE prop.pset = 'Pset_WallCommon' AND prop.property = 'IsExternal' AND prop.value = 'true'), false)
