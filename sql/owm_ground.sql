-- Ground seeds of a LiDAR cloud by the Overlap Window Method: the points that are the lowest of
-- at least two overlapping windows, and the lowest point of each cell that has no such seed.
-- points: name of a table or view with point_id x y z; point_id must be unique (not checked)
-- window_size: side of a window, units of x and y; overlap: share that the next window covers
-- min_points: points that a window must hold (NULL: half of the mean density)
-- cell_size: side of the cells that always get a point (0: off)
-- ties: 'lowest_id' or 'octree' (the reference's order); device: 'auto', 'cpu' or 'gpu'
-- gives: point_id x y z hits filled
-- example: FROM owm_ground('points', window_size := 5.0) WHERE hits > 2
CREATE OR REPLACE MACRO owm_ground(
    points,
    window_size := 10.0,
    overlap := 0.8,
    min_points := NULL,
    cell_size := 20.0,
    ties := 'lowest_id',
    device := 'auto'
) AS TABLE
SELECT unnest(
    owm_ground_udf(
        list(point_id::BIGINT), list(x::DOUBLE), list(y::DOUBLE), list(z::DOUBLE),
        {
            window_size: window_size,
            overlap: overlap,
            min_points: min_points,
            cell_size: cell_size,
            ties: ties,
            device: device
        }
    ),
    recursive := true
)
FROM query_table(points);

-- The same over lists, to run tile by tile: gives a list of structs.
-- point_ids, xs, ys, zs: lists of one length
-- example: SELECT tile, unnest(owm_ground_list(list(point_id), list(x), list(y), list(z))) FROM points GROUP BY tile
CREATE OR REPLACE MACRO owm_ground_list(
    point_ids,
    xs,
    ys,
    zs,
    window_size := 10.0,
    overlap := 0.8,
    min_points := NULL,
    cell_size := 20.0,
    ties := 'lowest_id',
    device := 'auto'
) AS owm_ground_udf(
    point_ids, xs, ys, zs,
    {
        window_size: window_size,
        overlap: overlap,
        min_points: min_points,
        cell_size: cell_size,
        ties: ties,
        device: device
    }
);
