WITH model AS (
    FROM read_ifc_objects('house.ifc')
),
content AS (
    SELECT rel.child AS elem, rel.parent AS storey
    FROM read_ifc_relations('house.ifc') AS rel SEMI JOIN model ON rel.child = model.global_id
    WHERE rel.relation_class = 'IfcRelContainedInSpatialStructure' AND rel.parent IS NOT NULL
)
FROM content
WHERE (SELECT max(TRY_CAST(one.attributes -> '$.Elevation' AS DOUBLE)) FROM model AS one WHERE one.global_id = content.storey)
    = (SELECT min((SELECT max(TRY_CAST(one.attributes -> '$.Elevation' AS DOUBLE)) FROM model AS one WHERE one.global_id = content.storey)) FROM content)
