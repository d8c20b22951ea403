-- A terrain grid: interpolated between the ground seeds of a cloud (those of owm_ground), or
-- between points that are ground already. Cell edges are multiples of the resolution.
-- points: name of a table or view with point_id x y z
-- window_size, overlap, min_points, cell_size, ties: as in owm_ground, for the seeds
-- source: 'seeds', or 'points' where every point is ground
-- resolution: side of a cell, units of x and y
-- method: 'tin' (linear on the Delaunay triangulation) or 'idw' (inverse distance squared)
-- neighbours: nearest points that 'idw' takes
-- extrapolate: also give cells outside the convex hull a height
-- thin: keep one ground point a cell, the one nearest to its centre
-- device: 'auto', 'cpu' or 'gpu'
-- gives: x y z, a row a cell; z is NULL where there is no height
-- example: FROM ground_surface('points', resolution := 0.5) WHERE z IS NOT NULL
CREATE OR REPLACE MACRO ground_surface(
    points,
    window_size := 10.0,
    overlap := 0.8,
    min_points := NULL,
    cell_size := 20.0,
    ties := 'lowest_id',
    source := 'seeds',
    resolution := 1.0,
    method := 'tin',
    neighbours := 10,
    extrapolate := false,
    thin := false,
    device := 'auto'
) AS TABLE
SELECT unnest(
    ground_surface_udf(
        list(point_id::BIGINT), list(x::DOUBLE), list(y::DOUBLE), list(z::DOUBLE),
        {
            window_size: window_size,
            overlap: overlap,
            min_points: min_points,
            cell_size: cell_size,
            ties: ties,
            source: source,
            resolution: resolution,
            method: method,
            neighbours: neighbours,
            extrapolate: extrapolate,
            thin: thin,
            device: device
        }
    ),
    recursive := true
)
FROM query_table(points);

-- The same over lists, to run tile by tile: gives a list of structs.
-- point_ids, xs, ys, zs: lists of one length
-- example: SELECT tile, unnest(ground_surface_list(list(point_id), list(x), list(y), list(z))) FROM points GROUP BY tile
CREATE OR REPLACE MACRO ground_surface_list(
    point_ids,
    xs,
    ys,
    zs,
    window_size := 10.0,
    overlap := 0.8,
    min_points := NULL,
    cell_size := 20.0,
    ties := 'lowest_id',
    source := 'seeds',
    resolution := 1.0,
    method := 'tin',
    neighbours := 10,
    extrapolate := false,
    thin := false,
    device := 'auto'
) AS ground_surface_udf(
    point_ids, xs, ys, zs,
    {
        window_size: window_size,
        overlap: overlap,
        min_points: min_points,
        cell_size: cell_size,
        ties: ties,
        source: source,
        resolution: resolution,
        method: method,
        neighbours: neighbours,
        extrapolate: extrapolate,
        thin: thin,
        device: device
    }
);
