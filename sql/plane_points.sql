-- The plane of each point, of those that detect_planes finds: one row a point, in the order of the
-- input; plane_id and distance are NULL where it belongs to none.
-- points: name of a table or view with point_id x y z
-- all else: as for detect_planes
-- gives: point_id plane_id distance
-- example: SELECT plane_id, avg(abs(distance)) FROM plane_points('points') GROUP BY plane_id
CREATE OR REPLACE MACRO plane_points(
    points,
    kernel := 'tangent',
    phi_num := 30,
    rho_num := NULL,
    s_level := NULL,
    s_ms := NULL,
    s_ps := NULL,
    max_thickness := 0.04,
    min_isotropy := 1 / 6,
    max_distance := NULL,
    min_points := NULL,
    split := false,
    orientation_tolerance := 5.0,
    device := 'auto'
) AS TABLE
SELECT unnest(
    plane_points_udf(
        list(point_id::BIGINT), list(x::DOUBLE), list(y::DOUBLE), list(z::DOUBLE),
        {
            kernel: kernel,
            phi_num: phi_num,
            rho_num: rho_num,
            s_level: s_level,
            s_ms: s_ms,
            s_ps: s_ps,
            max_thickness: max_thickness,
            min_isotropy: min_isotropy,
            max_distance: max_distance,
            min_points: min_points,
            split: split,
            orientation_tolerance: orientation_tolerance,
            device: device
        }
    ),
    recursive := true
)
FROM query_table(points);

-- The same over lists, to run tile by tile: gives a list of structs.
-- point_ids, xs, ys, zs: lists of one length
-- example: SELECT tile, unnest(plane_points_list(list(point_id), list(x), list(y), list(z)), recursive := true) FROM points GROUP BY tile
CREATE OR REPLACE MACRO plane_points_list(
    point_ids,
    xs,
    ys,
    zs,
    kernel := 'tangent',
    phi_num := 30,
    rho_num := NULL,
    s_level := NULL,
    s_ms := NULL,
    s_ps := NULL,
    max_thickness := 0.04,
    min_isotropy := 1 / 6,
    max_distance := NULL,
    min_points := NULL,
    split := false,
    orientation_tolerance := 5.0,
    device := 'auto'
) AS plane_points_udf(
    point_ids, xs, ys, zs,
    {
        kernel: kernel,
        phi_num: phi_num,
        rho_num: rho_num,
        s_level: s_level,
        s_ms: s_ms,
        s_ps: s_ps,
        max_thickness: max_thickness,
        min_isotropy: min_isotropy,
        max_distance: max_distance,
        min_points: min_points,
        split: split,
        orientation_tolerance: orientation_tolerance,
        device: device
    }
);
