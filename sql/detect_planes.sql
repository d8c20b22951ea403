-- Planes of a point cloud by the kernel-based 3D Hough transform: one row a plane, best first.
-- points: name of a table or view with point_id x y z
-- kernel: 'tangent', or 'paper' as published; phi_num, rho_num: steps of the accumulator
-- s_level: first level of the octree that may be planar; s_ms or s_ps: points that a node must
-- have, or their share of all; max_thickness, min_isotropy: of a node, as ratios of variances
-- max_distance: farthest point of a plane, in the unit of x, y and z; min_points: of a plane
-- split: whether parts that are not connected are planes of their own
-- orientation_tolerance: degrees that a horizontal or vertical plane may be off
-- device: 'auto', 'cpu' or 'gpu'; what is NULL follows from the cloud
-- gives: plane_id nx ny nz d votes point_count cx cy cz rmse area orientation boundary
-- example: SELECT plane_id, area, boundary FROM detect_planes('points') WHERE orientation = 'vertical'
CREATE OR REPLACE MACRO detect_planes(
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
    detect_planes_udf(
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
-- example: SELECT tile, unnest(detect_planes_list(list(point_id), list(x), list(y), list(z)), recursive := true) FROM points GROUP BY tile
CREATE OR REPLACE MACRO detect_planes_list(
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
) AS detect_planes_udf(
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
