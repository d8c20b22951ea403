-- Which elements of a building model the planes of a cloud belong to, and how far they are off:
-- one row a plane and element, the best first; a plane that matches none has one with NULL.
-- points: name of a table or view with point_id x y z
-- elements: one with global_id and mesh; what takes part: see spatial_elements
-- max_angle: degrees between plane and face; max_offset: metres, farthest point from a face that
-- lies on it; min_overlap: share of the plane that lies on the element, or of the face covered
-- unit: metres in a unit of x, y and z (0.3048 for feet); elements are in metres
-- the others: those of detect_planes; split is true here
-- gives: plane_id rank global_id nearest overlap coverage angle deviation, then the columns of
-- detect_planes; deviation in metres, positive outside the element
-- example: FROM plane_elements('points', 'elements') WHERE rank = 1 AND abs(deviation) > 0.02
CREATE OR REPLACE MACRO plane_elements(
    points,
    elements,
    max_angle := 5.0,
    max_offset := 0.05,
    min_overlap := 0.2,
    unit := 1.0,
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
    split := true,
    orientation_tolerance := 5.0,
    device := 'auto'
) AS TABLE
SELECT
    m.plane_id,
    row_number() OVER (
        PARTITION BY m.plane_id
        ORDER BY m.nearest DESC, m.overlap DESC, abs(m.deviation), m.global_id
    ) AS "rank",
    m.* EXCLUDE (plane_id)
FROM (
    SELECT unnest(
        plane_elements_udf(
            p.ids, p.xs, p.ys, p.zs, e.members,
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
                max_angle: max_angle,
                max_offset: max_offset,
                min_overlap: min_overlap,
                unit: unit,
                device: device
            }
        ),
        max_depth := 2
    )
    FROM (
        SELECT
            list(point_id::BIGINT) AS ids,
            list(x::DOUBLE) AS xs, list(y::DOUBLE) AS ys, list(z::DOUBLE) AS zs
        FROM query_table(points)
    ) AS p,
    (
        SELECT list({global_id: global_id, identity: identity, mesh: mesh}) AS members
        FROM spatial_elements(elements)
    ) AS e
) AS m
ORDER BY m.plane_id, "rank";
