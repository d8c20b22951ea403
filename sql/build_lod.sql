-- Level of detail of a point cloud, a hybrid voxel-point octree: one row a node, level by level.
-- Leaves hold the points, inner nodes the voxels of what is below them.
-- points: name of a table or view with point_id x y z, and red green blue intensity classification
--         where it has them; or a file that read_las reads, such as 'forest.laz', or a pattern such
--         as 'tiles/*.laz', whose files are one cloud: a file needs no row a point, its point_ids
--         are those of read_las
-- strategy: colour of a voxel: 'first' 'random' 'average', or 'weighted' with its neighbourhood
-- max_points: of a leaf; grid_size: voxels along each side of a node, a power of two up to 128
-- full_precision: whether a voxel lies where one of its points lies, not in the middle of its cell
-- seed: of 'random'; device: 'auto', 'cpu' or 'gpu'
-- gives: node level parent xmin ymin zmin size spacing is_leaf points count samples
-- (structs x y z red green blue intensity classification point_id)
-- example: SELECT node, count FROM build_lod(points) WHERE NOT is_leaf
-- example: COPY (FROM build_lod('forest.laz', strategy := 'average')) TO 'nodes.parquet'
CREATE OR REPLACE MACRO build_lod(
    points,
    strategy := 'weighted',
    max_points := 50000,
    grid_size := 128,
    full_precision := false,
    seed := 0,
    device := 'auto'
) AS TABLE
FROM query(
    build_lod_sql(
        points::VARCHAR,
        to_json({
            strategy: strategy,
            max_points: max_points,
            grid_size: grid_size,
            full_precision: full_precision,
            seed: seed,
            device: device
        })
    )
);

-- The same over lists, to run tile by tile: gives a list of structs.
-- point_ids (BIGINT[]), xs, ys, zs (DOUBLE[]): lists of one length; reds, greens, blues,
-- intensities (USMALLINT[]), classifications (UTINYINT[]): the same, or NULL; other whole numbers
-- must be cast, such as list(red::USMALLINT)
-- example: SELECT tile, unnest(build_lod_list(list(point_id), list(x), list(y), list(z)), max_depth := 2) FROM points GROUP BY tile
CREATE OR REPLACE MACRO build_lod_list(
    point_ids,
    xs,
    ys,
    zs,
    reds := NULL,
    greens := NULL,
    blues := NULL,
    intensities := NULL,
    classifications := NULL,
    strategy := 'weighted',
    max_points := 50000,
    grid_size := 128,
    full_precision := false,
    seed := 0,
    device := 'auto'
) AS build_lod_udf(
    point_ids, xs, ys, zs, reds, greens, blues, intensities, classifications,
    {
        strategy: strategy,
        max_points: max_points,
        grid_size: grid_size,
        full_precision: full_precision,
        seed: seed,
        device: device
    }
);
