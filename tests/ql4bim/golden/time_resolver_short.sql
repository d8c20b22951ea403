WITH model AS (
    FROM read_ifc_objects('house.ifc')
),
content AS (
    SELECT rel.child AS elem, rel.parent AS storey
    FROM read_ifc_relations('house.ifc') AS rel SEMI JOIN model ON rel.child = model.global_id
    WHERE rel.relation_class = 'IfcRelContainedInSpatialStructure' AND rel.parent IS NOT NULL
)
SELECT content.elem, content.storey, obj.global_id AS task, coalesce(
    obj.attributes ->> '$.TaskTime.ScheduleStart', ifc_date(control.attributes -> '$.ScheduleStart')
) AS "start"
FROM content
JOIN (
    SELECT parent AS element, child AS task FROM read_ifc_relations('house.ifc')
    WHERE kind = 'assigned_to_product' AND child_class = 'IfcTask'
    UNION
    SELECT child, parent FROM read_ifc_relations('house.ifc') WHERE kind = 'assigned_to_process' AND parent_class = 'IfcTask'
) AS rel ON rel.element = content.elem
JOIN model AS obj ON obj.global_id = rel.task
LEFT JOIN (FROM read_ifc_relations('house.ifc') WHERE kind = 'timed_by') AS timing ON timing.child = obj.global_id
LEFT JOIN model AS control ON control.global_id = timing.parent
