-- How far elements are from each other, and where: 0 when they meet, or one is inside the other.
-- a: name of a table or view with global_id and mesh; what takes part: see intersects_with
-- b: another one; NULL: all pairs within a
-- max_distance: metres; only pairs that are as near as this, or nearer
-- exclude_related: leave out the pairs of related_elements
-- relations: name of their table; default: relations for elements, else <a>_relations
-- device: 'auto', 'cpu' or 'gpu'
-- gives: a b distance ax ay az bx by bz flags: GlobalIds; metres; the nearest points of the two
-- example: FROM distance('ducts', 'beams', max_distance := 0.5) ORDER BY distance
CREATE OR REPLACE MACRO distance(
    a,
    b,
    max_distance := NULL,
    exclude_related := false,
    relations := NULL,
    device := 'auto'
) AS TABLE
SELECT p.*
FROM (
    SELECT unnest(
        distance_udf(s.a, s.b, s.within, {max_distance: max_distance, k: NULL, device: device}),
        max_depth := 2
    )
    FROM query(spatialq_sets_sql('distance', a, b)) AS s
) AS p
ANTI JOIN query(spatialq_related_sql(exclude_related, a, relations)) AS r
ON r.a = p.a AND r.b = p.b;

-- The pairs that are at most d apart.
-- a, b, exclude_related, relations, device: as in distance
-- d: metres
-- gives: the columns of distance
-- example: FROM closer_than('ducts', 'beams', 0.05)
CREATE OR REPLACE MACRO closer_than(
    a,
    b,
    d,
    exclude_related := false,
    relations := NULL,
    device := 'auto'
) AS TABLE
SELECT p.*
FROM distance(
    a, b,
    max_distance := coalesce(d, error('closer_than: d must be >= 0 metres, got NULL')),
    exclude_related := exclude_related, relations := relations, device := device
) AS p;

-- The pairs that are more than d apart: of the cross set, those that are not closer_than.
-- a, b: names of tables of elements, also the same; every pair in both orders
-- d: metres
-- device: as in distance
-- gives: a b
-- example: SELECT count(*) FROM farther_than('exits', 'desks', 30.0)
CREATE OR REPLACE MACRO farther_than(a, b, d, device := 'auto') AS TABLE
SELECT x.global_id AS a, y.global_id AS b
FROM spatial_elements(a) AS x JOIN spatial_elements(b) AS y ON x.identity <> y.identity
ANTI JOIN closer_than(a, b, d, device := device) AS p
ON p.a IS NOT DISTINCT FROM x.global_id AND p.b IS NOT DISTINCT FROM y.global_id;

-- The k nearest elements of b for every element of a.
-- a, b, device: as in distance; b may be a, or NULL: the nearest others
-- k: how many, >= 1
-- gives: the columns of distance
-- example: FROM nearest('desks', 'exits')
CREATE OR REPLACE MACRO nearest(a, b, k := 1, device := 'auto') AS TABLE
SELECT p.*
FROM (
    SELECT unnest(
        -- one more, since an element that is in both sets is not its own neighbour
        distance_udf(
            s.a, s.b, s.within,
            {
                max_distance: NULL,
                k: CASE WHEN k >= 1 THEN k + 1 ELSE coalesce(k, 0) END,
                device: device
            }
        ),
        max_depth := 2
    )
    FROM query(spatialq_sets_sql('nearest', a, b)) AS s
) AS p
QUALIFY row_number() OVER (PARTITION BY p.a ORDER BY p.distance, p.b) <= coalesce(k, 0);

-- The distance of two meshes in metres: 0 when they meet, or one is inside the other; NULL where
-- one of them is NULL. For many pairs of one table use the table macro distance.
-- one, other: STRUCT(vertices DOUBLE[], faces INTEGER[])
-- example: SELECT mesh_distance(d.mesh, b.mesh) FROM ducts AS d, beams AS b
CREATE OR REPLACE MACRO mesh_distance(one, other) AS
distance_of_meshes(one, other, {max_distance: NULL, k: NULL, device: 'cpu'}).distance;

-- Whether two meshes are at most d apart.
-- one, other: as in mesh_distance
-- d: metres
-- example: SELECT d.name FROM ducts AS d JOIN beams AS b ON mesh_closer_than(d.mesh, b.mesh, 0.05)
CREATE OR REPLACE MACRO mesh_closer_than(one, other, d) AS mesh_distance(one, other) <= d;

-- Whether two meshes are more than d apart.
-- one, other, d: as in mesh_closer_than
-- example: SELECT mesh_farther_than(d.mesh, e.mesh, 30.0) FROM desks AS d, exits AS e
CREATE OR REPLACE MACRO mesh_farther_than(one, other, d) AS mesh_distance(one, other) > d;

-- The distance of two meshes, as PostGIS names it.
-- one, other: as in mesh_distance
-- example: SELECT ST_3DDistance(d.mesh, b.mesh) FROM ducts AS d, beams AS b
CREATE OR REPLACE MACRO ST_3DDistance(one, other) AS mesh_distance(one, other);

-- Whether two meshes are at most d apart, as PostGIS names it.
-- one, other, d: as in mesh_closer_than
-- example: SELECT ST_3DDWithin(d.mesh, b.mesh, 0.05) FROM ducts AS d, beams AS b
CREATE OR REPLACE MACRO ST_3DDWithin(one, other, d) AS mesh_distance(one, other) <= d;
