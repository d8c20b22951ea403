WITH model AS (
    FROM read_ifc_objects('house.ifc')
),
content AS (
    SELECT rel.child AS elem, rel.parent AS storey
    FROM read_ifc_relations('house.ifc') AS rel SEMI JOIN model ON rel.child = model.global_id
    WHERE rel.relation_class = 'IfcRelContainedInSpatialStructure' AND rel.parent IS NOT NULL
)
SELECT content.elem, content.storey, obj.name FROM content JOIN model AS obj ON obj.global_id = content.storey WHERE obj.name IS NOT NULL
