WITH model AS (
    FROM read_ifc_objects('house.ifc')
),
content AS (
    SELECT rel.child AS "1", rel.parent AS "2"
    FROM read_ifc_relations('house.ifc') AS rel SEMI JOIN model ON rel.child = model.global_id
    WHERE rel.relation_class = 'IfcRelContainedInSpatialStructure' AND rel.parent IS NOT NULL
)
FROM model SEMI JOIN content ON model.global_id = content."2"
