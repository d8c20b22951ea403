-- Ground of a LiDAR cloud, and the height above it: one row a point, in the order of the input.
-- points: name of a table or view with point_id x y z
-- window_size, overlap, min_points, cell_size: those of owm_ground, in metres
-- object_width: widest object, metres; max_distance: farthest ground point from level terrain,
-- metres; distance_per_slope: how much that grows with the slope of the terrain, metres
-- unit: metres in a unit of x, y and z (0.3048 for feet); device: 'auto', 'cpu' or 'gpu'
-- gives: point_id height is_ground
-- example: FROM points JOIN classify_ground('points') USING (point_id) WHERE height > 2
CREATE OR REPLACE MACRO classify_ground(
    points,
    window_size := 10.0,
    overlap := 0.8,
    min_points := NULL,
    cell_size := 20.0,
    object_width := 60.0,
    max_distance := 0.4,
    distance_per_slope := 0.85,
    unit := 1.0,
    device := 'auto'
) AS TABLE
SELECT unnest(
    classify_ground_udf(
        list(point_id::BIGINT), list(x::DOUBLE), list(y::DOUBLE), list(z::DOUBLE),
        {
            window_size: window_size,
            overlap: overlap,
            min_points: min_points,
            cell_size: cell_size,
            object_width: object_width,
            max_distance: max_distance,
            distance_per_slope: distance_per_slope,
            unit: unit,
            device: device
        }
    ),
    recursive := true
)
FROM query_table(points);

-- The same over lists, to run tile by tile: gives a list of structs.
-- point_ids, xs, ys, zs: lists of one length
-- example: SELECT tile, unnest(classify_ground_list(list(point_id), list(x), list(y), list(z))) FROM points GROUP BY tile
CREATE OR REPLACE MACRO classify_ground_list(
    point_ids,
    xs,
    ys,
    zs,
    window_size := 10.0,
    overlap := 0.8,
    min_points := NULL,
    cell_size := 20.0,
    object_width := 60.0,
    max_distance := 0.4,
    distance_per_slope := 0.85,
    unit := 1.0,
    device := 'auto'
) AS classify_ground_udf(
    point_ids, xs, ys, zs,
    {
        window_size: window_size,
        overlap: overlap,
        min_points: min_points,
        cell_size: cell_size,
        object_width: object_width,
        max_distance: max_distance,
        distance_per_slope: distance_per_slope,
        unit: unit,
        device: device
    }
);
