-- The storeys of elements under one name for all models: a floor is called as most models call it.
-- elements: Name of a table or view with storey, zmin, zmax and file_name, as read_ifc and load
--     give them.
-- objects: Name of a table or view of the objects of the same models, with the storeys' elevations.
-- gives: file_name step_id global_id storey, storey_unified and its elevation in metres: those of
--     the element's storey, or where that does not reach to the height of the element, or lies
--     elsewhere than its elements do, those of the floor at that height; where no storey says how high
--     it is, the element's storey and NULL
-- example: SELECT storey_unified, count(*) FROM unified_storeys('elements', 'objects') GROUP BY ALL
CREATE OR REPLACE MACRO unified_storeys(elements, objects) AS TABLE
WITH e AS (
    SELECT file_name, step_id, global_id, storey, zmin, zmax
    FROM query(spatialq_rows_sql(
        'unified_storeys: elements',
        spatialq_name('unified_storeys: elements must be the name of a table, got ', elements),
        ['file_name', 'step_id', 'global_id', 'storey', 'zmin', 'zmax']
    ))
),
-- a storey at another height than its elements has no elevation of its own, or is a whole building
storeys AS (
    SELECT s.file_name, s.name, s.elevation, count(*) AS n
    FROM query(spatialq_rows_sql(
        'unified_storeys: objects',
        spatialq_name('unified_storeys: objects must be the name of a table, got ', objects),
        ['file_name', 'name', 'ifc_class', 'elevation']
    )) AS s
    JOIN e ON e.file_name = s.file_name AND e.storey = s.name
    WHERE s.ifc_class = 'IfcBuildingStorey' AND s.elevation IS NOT NULL
    GROUP BY s.file_name, s.name, s.elevation
    HAVING median(e.zmin) - s.elevation BETWEEN -1.5 AND 2.5
),
-- elevations less than half a metre apart are of one floor
steps AS (
    SELECT *, elevation - lag(elevation) OVER (ORDER BY elevation, file_name, name) > 0.5 AS is_new FROM storeys
),
numbered AS (
    SELECT *, count(*) FILTER (is_new) OVER (ORDER BY elevation, file_name, name ROWS UNBOUNDED PRECEDING) AS floor
    FROM steps
),
names AS (
    SELECT floor, name, count(DISTINCT file_name) AS models, sum(n) AS n FROM numbered GROUP BY ALL
),
floors AS (
    SELECT f.floor, f.elevation, lead(f.elevation, 1, 'infinity') OVER (ORDER BY f.floor) AS above, n.name
    FROM (SELECT floor, median(elevation) AS elevation FROM numbered GROUP BY floor) AS f
    JOIN (
        SELECT floor, arg_max(name, (models, n, name)) AS name FROM names GROUP BY floor
    ) AS n USING (floor)
),
own AS (
    SELECT file_name, name, min(floor) AS floor FROM numbered GROUP BY ALL
)
SELECT e.file_name, e.step_id, e.global_id, e.storey,
    coalesce(f.name, g.name, (SELECT arg_min(name, floor) FROM floors), e.storey) AS storey_unified,
    coalesce(f.elevation, g.elevation, (SELECT min(elevation) FROM floors)) AS elevation
FROM e
LEFT JOIN own AS o ON o.file_name = e.file_name AND o.name = e.storey
LEFT JOIN floors AS f ON f.floor = o.floor AND e.zmax > f.elevation - 1.0 AND e.zmin < f.above
ASOF LEFT JOIN floors AS g ON (e.zmin + e.zmax) / 2 + 0.15 >= g.elevation;
