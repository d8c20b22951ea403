WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
FROM model
WHERE (SELECT count(*) FROM read_ifc_relations('house.ifc') AS rel WHERE rel.parent = model.global_id
    AND rel.relation_class = 'IfcRelVoidsElement' AND rel.child IS NOT NULL) >= 2
