-- The pairs of elements that have a common interior: what clashes. Touching is no clash.
-- a: name of a table or view with global_id and mesh, as read_ifc and load give them; spaces,
--    openings and the like take no part, unless there is nothing else
-- b: another one; without it all pairs within a
-- tolerance: metres; surfaces that are nearer only touch, a common part that is thinner is none
-- method: 'exact', or 'pairmesh' (inner and outer meshes, as Schweizer's thesis has it)
-- broad_phase: 'auto', 'rtree' or 'grid', for pairs of boxes; the result is the same
-- exclude_related: leave out the pairs of related_elements
-- relations: name of their table; default: relations for elements, else <a>_relations
-- device: 'auto', 'cpu' or 'gpu'
-- gives: a b relation depth x y z flags: GlobalIds; overlap, contains, inside, covers, covered_by
--        or equals; metres; a point in the common interior; what is odd, such as 'a_open'
-- example: FROM intersects_with('ducts', 'beams', tolerance := 0.002) ORDER BY depth DESC
CREATE OR REPLACE MACRO intersects_with(
    a,
    b := NULL,
    tolerance := 0.001,
    method := 'exact',
    broad_phase := 'auto',
    exclude_related := false,
    relations := NULL,
    device := 'auto'
) AS TABLE
SELECT p.* EXCLUDE (distance)
FROM (
    SELECT unnest(
        intersects_with_udf(
            s.a, s.b, s.within,
            {
                tolerance: tolerance,
                method: method,
                broad_phase: broad_phase,
                relations: false,
                device: device
            }
        ),
        max_depth := 2
    )
    FROM query(spatialq_sets_sql('intersects_with', a, b)) AS s
) AS p
ANTI JOIN query(spatialq_related_sql(exclude_related, a, relations)) AS r
ON r.a = p.a AND r.b = p.b;

-- How elements stand to each other: the relation of all pairs that are not disjoint.
-- a, b, tolerance, method, broad_phase, exclude_related, relations, device: as in intersects_with
-- gives: a b relation depth distance x y z flags; the relation of a to b, touch included, and
--        the distance of the surfaces
-- example: SELECT relation, count(*) FROM spatial_relations('elements') GROUP BY relation
CREATE OR REPLACE MACRO spatial_relations(
    a,
    b := NULL,
    tolerance := 0.001,
    method := 'exact',
    broad_phase := 'auto',
    exclude_related := false,
    relations := NULL,
    device := 'auto'
) AS TABLE
SELECT p.*
FROM (
    SELECT unnest(
        intersects_with_udf(
            s.a, s.b, s.within,
            {
                tolerance: tolerance,
                method: method,
                broad_phase: broad_phase,
                relations: true,
                device: device
            }
        ),
        max_depth := 2
    )
    FROM query(spatialq_sets_sql('spatial_relations', a, b)) AS s
) AS p
ANTI JOIN query(spatialq_related_sql(exclude_related, a, relations)) AS r
ON r.a = p.a AND r.b = p.b;

-- The pairs of which a touches b: they are in contact, and have no common interior.
-- a, b: names of tables of elements, also the same; every pair in both orders
-- tolerance, device: as in intersects_with
-- gives: the columns of spatial_relations
-- example: FROM touches('walls', 'slabs')
CREATE OR REPLACE MACRO touches(a, b, tolerance := 0.001, device := 'auto') AS TABLE
SELECT p.* FROM spatial_relations(a, b, tolerance := tolerance, device := device) AS p
WHERE p.relation = 'touch';

-- The pairs of which a and b overlap: a common interior, and each has a part outside the other. (OVERLAPS is a
-- word of SQL.)
-- a, b: names of tables of elements, also the same; every pair in both orders
-- tolerance, device: as in intersects_with
-- gives: the columns of spatial_relations
-- example: FROM overlaps_with('ducts', 'beams')
CREATE OR REPLACE MACRO overlaps_with(a, b, tolerance := 0.001, device := 'auto') AS TABLE
SELECT p.* FROM spatial_relations(a, b, tolerance := tolerance, device := device) AS p
WHERE p.relation = 'overlap';

-- The pairs of which b lies inside a, without contact with its surface. (contains is a function of DuckDB.)
-- a, b: names of tables of elements, also the same; every pair in both orders
-- tolerance, device: as in intersects_with
-- gives: the columns of spatial_relations
-- example: FROM contains_element('spaces', 'furniture')
CREATE OR REPLACE MACRO contains_element(a, b, tolerance := 0.001, device := 'auto') AS TABLE
SELECT p.* FROM spatial_relations(a, b, tolerance := tolerance, device := device) AS p
WHERE p.relation = 'contains';

-- The pairs of which a lies inside b, without contact with its surface.
-- a, b: names of tables of elements, also the same; every pair in both orders
-- tolerance, device: as in intersects_with
-- gives: the columns of spatial_relations
-- example: FROM inside('furniture', 'spaces')
CREATE OR REPLACE MACRO inside(a, b, tolerance := 0.001, device := 'auto') AS TABLE
SELECT p.* FROM spatial_relations(a, b, tolerance := tolerance, device := device) AS p
WHERE p.relation = 'inside';

-- The pairs of which b lies inside a, in contact with its surface.
-- a, b: names of tables of elements, also the same; every pair in both orders
-- tolerance, device: as in intersects_with
-- gives: the columns of spatial_relations
-- example: FROM covers('spaces', 'furniture')
CREATE OR REPLACE MACRO covers(a, b, tolerance := 0.001, device := 'auto') AS TABLE
SELECT p.* FROM spatial_relations(a, b, tolerance := tolerance, device := device) AS p
WHERE p.relation = 'covers';

-- The pairs of which a lies inside b, in contact with its surface.
-- a, b: names of tables of elements, also the same; every pair in both orders
-- tolerance, device: as in intersects_with
-- gives: the columns of spatial_relations
-- example: FROM covered_by('furniture', 'spaces')
CREATE OR REPLACE MACRO covered_by(a, b, tolerance := 0.001, device := 'auto') AS TABLE
SELECT p.* FROM spatial_relations(a, b, tolerance := tolerance, device := device) AS p
WHERE p.relation = 'covered_by';

-- The pairs of which a and b are the same body.
-- a, b: names of tables of elements, also the same; every pair in both orders
-- tolerance, device: as in intersects_with
-- gives: the columns of spatial_relations
-- example: FROM equals('old', 'new')
CREATE OR REPLACE MACRO equals(a, b, tolerance := 0.001, device := 'auto') AS TABLE
SELECT p.* FROM spatial_relations(a, b, tolerance := tolerance, device := device) AS p
WHERE p.relation = 'equals';

-- The pairs that are disjoint: of the cross set, those without any other relation.
-- a, b: names of tables of elements, also the same; every pair in both orders
-- tolerance, device: as in intersects_with
-- gives: a b
-- example: SELECT count(*) FROM disjoint('ducts', 'beams')
CREATE OR REPLACE MACRO disjoint(a, b, tolerance := 0.001, device := 'auto') AS TABLE
SELECT x.global_id AS a, y.global_id AS b
FROM spatial_elements(a) AS x JOIN spatial_elements(b) AS y ON x.identity <> y.identity
ANTI JOIN spatial_relations(a, b, tolerance := tolerance, device := device) AS p
ON p.a IS NOT DISTINCT FROM x.global_id AND p.b IS NOT DISTINCT FROM y.global_id;

-- The relation of two meshes: disjoint, touch, overlap, contains, inside, covers, covered_by or
-- equals; NULL where one of them is NULL. For many pairs of one table use spatial_relations.
-- one, other: STRUCT(vertices DOUBLE[], faces INTEGER[])
-- tolerance: metres
-- example: SELECT mesh_relation(w.mesh, s.mesh) FROM walls AS w JOIN slabs AS s USING (storey)
CREATE OR REPLACE MACRO mesh_relation(one, other, tolerance := 0.001) AS intersects_with_of_meshes(
    one, other,
    {tolerance: tolerance, method: 'exact', broad_phase: 'auto', relations: true, device: 'cpu'}
).relation;

-- Whether two meshes have a common interior.
-- one, other, tolerance: as in mesh_relation
-- example: SELECT d.name FROM ducts AS d JOIN beams AS b ON intersects(d.mesh, b.mesh)
CREATE OR REPLACE MACRO intersects(one, other, tolerance := 0.001) AS intersects_with_of_meshes(
    one, other,
    {tolerance: tolerance, method: 'exact', broad_phase: 'auto', relations: false, device: 'cpu'}
).found;

-- Whether two meshes are disjoint; see mesh_relation.
-- one, other, tolerance: as in mesh_relation
-- example: SELECT mesh_disjoint(a.mesh, b.mesh) FROM walls AS a, slabs AS b
CREATE OR REPLACE MACRO mesh_disjoint(one, other, tolerance := 0.001) AS
mesh_relation(one, other, tolerance := tolerance) = 'disjoint';

-- Whether two meshes touch; see mesh_relation.
-- one, other, tolerance: as in mesh_relation
-- example: SELECT mesh_touches(a.mesh, b.mesh) FROM walls AS a, slabs AS b
CREATE OR REPLACE MACRO mesh_touches(one, other, tolerance := 0.001) AS
mesh_relation(one, other, tolerance := tolerance) = 'touch';

-- Whether two meshes overlap; see mesh_relation.
-- one, other, tolerance: as in mesh_relation
-- example: SELECT mesh_overlaps(a.mesh, b.mesh) FROM walls AS a, slabs AS b
CREATE OR REPLACE MACRO mesh_overlaps(one, other, tolerance := 0.001) AS
mesh_relation(one, other, tolerance := tolerance) = 'overlap';

-- Whether two meshes stand so that the first contains the other; see mesh_relation.
-- one, other, tolerance: as in mesh_relation
-- example: SELECT mesh_contains(a.mesh, b.mesh) FROM walls AS a, slabs AS b
CREATE OR REPLACE MACRO mesh_contains(one, other, tolerance := 0.001) AS
mesh_relation(one, other, tolerance := tolerance) = 'contains';

-- Whether two meshes stand so that the first is inside the other; see mesh_relation.
-- one, other, tolerance: as in mesh_relation
-- example: SELECT mesh_inside(a.mesh, b.mesh) FROM walls AS a, slabs AS b
CREATE OR REPLACE MACRO mesh_inside(one, other, tolerance := 0.001) AS
mesh_relation(one, other, tolerance := tolerance) = 'inside';

-- Whether two meshes stand so that the first covers the other; see mesh_relation.
-- one, other, tolerance: as in mesh_relation
-- example: SELECT mesh_covers(a.mesh, b.mesh) FROM walls AS a, slabs AS b
CREATE OR REPLACE MACRO mesh_covers(one, other, tolerance := 0.001) AS
mesh_relation(one, other, tolerance := tolerance) = 'covers';

-- Whether two meshes stand so that the first is covered by the other; see mesh_relation.
-- one, other, tolerance: as in mesh_relation
-- example: SELECT mesh_covered_by(a.mesh, b.mesh) FROM walls AS a, slabs AS b
CREATE OR REPLACE MACRO mesh_covered_by(one, other, tolerance := 0.001) AS
mesh_relation(one, other, tolerance := tolerance) = 'covered_by';

-- Whether two meshes are equal; see mesh_relation.
-- one, other, tolerance: as in mesh_relation
-- example: SELECT mesh_equals(a.mesh, b.mesh) FROM walls AS a, slabs AS b
CREATE OR REPLACE MACRO mesh_equals(one, other, tolerance := 0.001) AS
mesh_relation(one, other, tolerance := tolerance) = 'equals';

-- Whether two meshes meet, as PostGIS names it: any contact, not only of the interiors.
-- one, other: meshes, as in mesh_relation
-- example: SELECT ST_3DIntersects(a.mesh, b.mesh) FROM walls AS a, slabs AS b
CREATE OR REPLACE MACRO ST_3DIntersects(one, other) AS mesh_relation(one, other) <> 'disjoint';
