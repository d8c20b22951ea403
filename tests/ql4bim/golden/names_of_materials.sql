WITH model AS (
    FROM read_ifc_objects('house.ifc')
),
parts AS (
    SELECT rel.child AS object, coalesce(rel.parent_name, rel.parent_class) AS material
    FROM read_ifc_relations('house.ifc') AS rel SEMI JOIN model ON rel.child = model.global_id
    WHERE rel.relation_class IN (
        'IfcRelAssociates', 'IfcRelAssociatesAppliedValue', 'IfcRelAssociatesApproval',
        'IfcRelAssociatesClassification', 'IfcRelAssociatesConstraint', 'IfcRelAssociatesDocument',
        'IfcRelAssociatesLibrary', 'IfcRelAssociatesMaterial', 'IfcRelAssociatesProfileDef',
        'IfcRelAssociatesProfileProperties'
    ) AND coalesce(rel.parent_name, rel.parent_class) IS NOT NULL
)
FROM parts WHERE material = 'concrete'
