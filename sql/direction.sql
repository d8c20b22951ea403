-- The pairs of which b lies above a: a is the reference, b is what lies there.
-- a: name of a table or view with global_id and mesh; what takes part: see intersects_with
-- b: another one, or the same; NULL: all pairs within a; every pair in both orders
-- model: 'projection' (b is met straight above a), or 'halfspace' (b is higher than the top of a,
--        wherever)
-- strict: all of b, not only some part of it
-- true_north: degrees clockwise from +Y seen from above, for north, south, east and west
-- tolerance: metres
-- device: 'auto', 'cpu' or 'gpu'
-- gives: a b flags
-- example: FROM above('slabs', 'walls')
CREATE OR REPLACE MACRO above(
    a,
    b,
    model := 'projection',
    strict := false,
    true_north := 0.0,
    tolerance := 0.001,
    device := 'auto'
) AS TABLE
SELECT unnest(
    direction_udf(
        s.a, s.b, s.within,
        {
            direction: 'above',
            model: model,
            strict: strict,
            true_north: true_north,
            tolerance: tolerance,
            device: device
        }
    ),
    max_depth := 2
)
FROM query(spatialq_sets_sql('above', a, b)) AS s;

-- The pairs of which b lies below a.
-- a, b, model, strict, true_north, tolerance, device: as in above
-- gives: a b flags
-- example: FROM below('slabs', 'walls', model := 'halfspace', strict := true)
CREATE OR REPLACE MACRO below(
    a,
    b,
    model := 'projection',
    strict := false,
    true_north := 0.0,
    tolerance := 0.001,
    device := 'auto'
) AS TABLE
SELECT unnest(
    direction_udf(
        s.a, s.b, s.within,
        {
            direction: 'below',
            model: model,
            strict: strict,
            true_north: true_north,
            tolerance: tolerance,
            device: device
        }
    ),
    max_depth := 2
)
FROM query(spatialq_sets_sql('below', a, b)) AS s;

-- The pairs of which b lies north of a.
-- a, b, model, strict, true_north, tolerance, device: as in above
-- gives: a b flags
-- example: FROM north_of('slabs', 'walls', model := 'halfspace', strict := true)
CREATE OR REPLACE MACRO north_of(
    a,
    b,
    model := 'projection',
    strict := false,
    true_north := 0.0,
    tolerance := 0.001,
    device := 'auto'
) AS TABLE
SELECT unnest(
    direction_udf(
        s.a, s.b, s.within,
        {
            direction: 'north',
            model: model,
            strict: strict,
            true_north: true_north,
            tolerance: tolerance,
            device: device
        }
    ),
    max_depth := 2
)
FROM query(spatialq_sets_sql('north_of', a, b)) AS s;

-- The pairs of which b lies south of a.
-- a, b, model, strict, true_north, tolerance, device: as in above
-- gives: a b flags
-- example: FROM south_of('slabs', 'walls', model := 'halfspace', strict := true)
CREATE OR REPLACE MACRO south_of(
    a,
    b,
    model := 'projection',
    strict := false,
    true_north := 0.0,
    tolerance := 0.001,
    device := 'auto'
) AS TABLE
SELECT unnest(
    direction_udf(
        s.a, s.b, s.within,
        {
            direction: 'south',
            model: model,
            strict: strict,
            true_north: true_north,
            tolerance: tolerance,
            device: device
        }
    ),
    max_depth := 2
)
FROM query(spatialq_sets_sql('south_of', a, b)) AS s;

-- The pairs of which b lies east of a.
-- a, b, model, strict, true_north, tolerance, device: as in above
-- gives: a b flags
-- example: FROM east_of('slabs', 'walls', model := 'halfspace', strict := true)
CREATE OR REPLACE MACRO east_of(
    a,
    b,
    model := 'projection',
    strict := false,
    true_north := 0.0,
    tolerance := 0.001,
    device := 'auto'
) AS TABLE
SELECT unnest(
    direction_udf(
        s.a, s.b, s.within,
        {
            direction: 'east',
            model: model,
            strict: strict,
            true_north: true_north,
            tolerance: tolerance,
            device: device
        }
    ),
    max_depth := 2
)
FROM query(spatialq_sets_sql('east_of', a, b)) AS s;

-- The pairs of which b lies west of a.
-- a, b, model, strict, true_north, tolerance, device: as in above
-- gives: a b flags
-- example: FROM west_of('slabs', 'walls', model := 'halfspace', strict := true)
CREATE OR REPLACE MACRO west_of(
    a,
    b,
    model := 'projection',
    strict := false,
    true_north := 0.0,
    tolerance := 0.001,
    device := 'auto'
) AS TABLE
SELECT unnest(
    direction_udf(
        s.a, s.b, s.within,
        {
            direction: 'west',
            model: model,
            strict: strict,
            true_north: true_north,
            tolerance: tolerance,
            device: device
        }
    ),
    max_depth := 2
)
FROM query(spatialq_sets_sql('west_of', a, b)) AS s;

-- Whether the second of two meshes lies above the first; NULL where one of them is NULL.
-- one, other: STRUCT(vertices DOUBLE[], faces INTEGER[])
-- model, strict, true_north, tolerance: as in above
-- example: SELECT mesh_above(s.mesh, w.mesh) FROM slabs AS s, walls AS w
CREATE OR REPLACE MACRO mesh_above(
    one,
    other,
    model := 'projection',
    strict := false,
    true_north := 0.0,
    tolerance := 0.001
) AS direction_of_meshes(
    one, other,
    {
        direction: 'above',
        model: model,
        strict: strict,
        true_north: true_north,
        tolerance: tolerance,
        device: 'cpu'
    }
).found;

-- Whether the second of two meshes lies below the first; NULL where one of them is NULL.
-- one, other: STRUCT(vertices DOUBLE[], faces INTEGER[])
-- model, strict, true_north, tolerance: as in above
-- example: SELECT mesh_below(s.mesh, w.mesh) FROM slabs AS s, walls AS w
CREATE OR REPLACE MACRO mesh_below(
    one,
    other,
    model := 'projection',
    strict := false,
    true_north := 0.0,
    tolerance := 0.001
) AS direction_of_meshes(
    one, other,
    {
        direction: 'below',
        model: model,
        strict: strict,
        true_north: true_north,
        tolerance: tolerance,
        device: 'cpu'
    }
).found;

-- Whether the second of two meshes lies north of the first; NULL where one of them is NULL.
-- one, other: STRUCT(vertices DOUBLE[], faces INTEGER[])
-- model, strict, true_north, tolerance: as in above
-- example: SELECT mesh_north_of(s.mesh, w.mesh) FROM slabs AS s, walls AS w
CREATE OR REPLACE MACRO mesh_north_of(
    one,
    other,
    model := 'projection',
    strict := false,
    true_north := 0.0,
    tolerance := 0.001
) AS direction_of_meshes(
    one, other,
    {
        direction: 'north',
        model: model,
        strict: strict,
        true_north: true_north,
        tolerance: tolerance,
        device: 'cpu'
    }
).found;

-- Whether the second of two meshes lies south of the first; NULL where one of them is NULL.
-- one, other: STRUCT(vertices DOUBLE[], faces INTEGER[])
-- model, strict, true_north, tolerance: as in above
-- example: SELECT mesh_south_of(s.mesh, w.mesh) FROM slabs AS s, walls AS w
CREATE OR REPLACE MACRO mesh_south_of(
    one,
    other,
    model := 'projection',
    strict := false,
    true_north := 0.0,
    tolerance := 0.001
) AS direction_of_meshes(
    one, other,
    {
        direction: 'south',
        model: model,
        strict: strict,
        true_north: true_north,
        tolerance: tolerance,
        device: 'cpu'
    }
).found;

-- Whether the second of two meshes lies east of the first; NULL where one of them is NULL.
-- one, other: STRUCT(vertices DOUBLE[], faces INTEGER[])
-- model, strict, true_north, tolerance: as in above
-- example: SELECT mesh_east_of(s.mesh, w.mesh) FROM slabs AS s, walls AS w
CREATE OR REPLACE MACRO mesh_east_of(
    one,
    other,
    model := 'projection',
    strict := false,
    true_north := 0.0,
    tolerance := 0.001
) AS direction_of_meshes(
    one, other,
    {
        direction: 'east',
        model: model,
        strict: strict,
        true_north: true_north,
        tolerance: tolerance,
        device: 'cpu'
    }
).found;

-- Whether the second of two meshes lies west of the first; NULL where one of them is NULL.
-- one, other: STRUCT(vertices DOUBLE[], faces INTEGER[])
-- model, strict, true_north, tolerance: as in above
-- example: SELECT mesh_west_of(s.mesh, w.mesh) FROM slabs AS s, walls AS w
CREATE OR REPLACE MACRO mesh_west_of(
    one,
    other,
    model := 'projection',
    strict := false,
    true_north := 0.0,
    tolerance := 0.001
) AS direction_of_meshes(
    one, other,
    {
        direction: 'west',
        model: model,
        strict: strict,
        true_north: true_north,
        tolerance: tolerance,
        device: 'cpu'
    }
).found;
