-- The objects that a selector of IfcOpenShell selects. docs/selector.md has its language.
-- selector: Such as 'IfcWall, Pset_WallCommon.FireRating=2HR'.
-- objects: Name of a table or view as read_ifc_objects and load give it; relations, properties,
--     materials and classifications are looked for beside it, as load names them.
-- gives: the rows of objects
-- example: SELECT name FROM objects_where('IfcBuildingStorey + IfcSpace')
CREATE OR REPLACE MACRO objects_where(selector, objects := 'objects') AS TABLE
FROM query(spatialq_rows_sql(
    'objects_where: objects',
    spatialq_name('objects_where: objects must be the name of a table, got ', objects),
    ['file_name', 'step_id']
)) AS o
SEMI JOIN query(
    spatialq_selector_sql(
        'objects_where',
        spatialq_text('objects_where: selector must be text, got ', selector),
        spatialq_name('objects_where: objects must be the name of a table, got ', objects)
    )
) AS s ON s.step_id = o.step_id AND s.file_name = o.file_name;

-- The elements that a selector of IfcOpenShell selects. docs/selector.md has its language.
-- selector: Such as 'IfcWall, Pset_WallCommon.FireRating=2HR'.
-- elements: Name of a table or view with step_id and file_name, as read_ifc and load give them.
-- objects: Name of the table of their objects, by default the one that load makes beside it:
--     objects for elements, t_objects for t.
-- gives: the rows of elements
-- example: SELECT name, volume FROM elements_where('IfcSlab, material=concrete')
CREATE OR REPLACE MACRO elements_where(selector, elements := 'elements', objects := NULL) AS TABLE
WITH whole AS NOT MATERIALIZED (
    FROM query(spatialq_rows_sql(
        'elements_where: elements',
        spatialq_name('elements_where: elements must be the name of a table, got ', elements),
        ['file_name', 'step_id']
    ))
),
models AS NOT MATERIALIZED (
    SELECT DISTINCT m.file_name FROM query(spatialq_rows_sql(
        'elements_where: objects',
        if(
            objects IS NULL,
            spatialq_objects_beside(
                'elements_where: elements',
                spatialq_name('elements_where: elements must be the name of a table, got ', elements)
            ),
            spatialq_name('elements_where: objects must be the name of a table, got ', objects)
        ),
        ['file_name', 'step_id']
    )) AS m
),
-- materialized, so that it is asked where no element is left, too
checked AS MATERIALIZED (
    SELECT CASE
        WHEN own.name IS NULL OR other.name IS NULL OR shared.models > 0 THEN true
        ELSE spatialq_refuse(
            'elements_where: objects must be those of the models that the elements are of, such as ',
            '''' || own.name || ''', got those of ''' || other.name || ''''
        ) > 0
    END AS is_right
    FROM (SELECT min(w.file_name) AS name FROM whole AS w) AS own,
        (SELECT min(m.file_name) AS name FROM models AS m) AS other,
        (SELECT count(*) AS models FROM models AS m SEMI JOIN whole AS w USING (file_name)) AS shared
)
SELECT e.* FROM whole AS e
SEMI JOIN query(
    spatialq_selector_sql(
        'elements_where',
        spatialq_text('elements_where: selector must be text, got ', selector),
        if(
            objects IS NULL,
            spatialq_objects_beside(
                'elements_where: elements',
                spatialq_name('elements_where: elements must be the name of a table, got ', elements)
            ),
            spatialq_name('elements_where: objects must be the name of a table, got ', objects)
        )
    )
) AS s ON s.step_id = e.step_id AND s.file_name = e.file_name
WHERE (SELECT c.is_right FROM checked AS c);
