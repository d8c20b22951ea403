WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
SELECT rel.parent AS whole, rel.child AS part
FROM read_ifc_relations('house.ifc') AS rel SEMI JOIN model ON rel.parent = model.global_id
WHERE rel.relation_class IN ('IfcRelAggregates', 'IfcRelNests')
AND (rel.relation_class = 'IfcRelAggregates'
    OR rel.parent IN (SELECT global_id FROM model WHERE ifc_schema = 'IFC2X3'))
AND rel.child IS NOT NULL
