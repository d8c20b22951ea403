WITH model AS (
    FROM read_ifc_objects('house.ifc')
),
voids AS (
    SELECT rel.parent AS host, rel.child AS open
    FROM read_ifc_relations('house.ifc') AS rel SEMI JOIN model ON rel.parent = model.global_id
    WHERE rel.relation_class = 'IfcRelVoidsElement' AND rel.child IS NOT NULL
)
SELECT voids.host, voids.open, rel.child AS fill FROM voids JOIN read_ifc_relations('house.ifc') AS rel ON rel.parent = voids.open WHERE rel.relation_class = 'IfcRelFillsElement' AND rel.child IS NOT NULL
