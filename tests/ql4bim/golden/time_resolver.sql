WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
SELECT model.global_id AS element, obj.global_id AS task, coalesce(
    obj.attributes ->> '$.TaskTime.ScheduleStart', ifc_date(control.attributes -> '$.ScheduleStart')
) AS "start"
FROM model
JOIN (
    SELECT parent AS element, child AS task FROM read_ifc_relations('house.ifc')
    WHERE kind = 'assigned_to_product' AND child_class = 'IfcTask'
    UNION
    SELECT child, parent FROM read_ifc_relations('house.ifc') WHERE kind = 'assigned_to_process' AND parent_class = 'IfcTask'
) AS rel ON rel.element = model.global_id
JOIN model AS obj ON obj.global_id = rel.task
LEFT JOIN (FROM read_ifc_relations('house.ifc') WHERE kind = 'timed_by') AS timing ON timing.child = obj.global_id
LEFT JOIN model AS control ON control.global_id = timing.parent
