-- Multi-scale terrain features of a grid (POPS): patches of several scales in square examples, and
-- the statistics of each feature over the patches of an example. Lengths in the unit of x and y.
-- grid: name of a table or view of cells x y z, in any order, or a file that read_grid reads, such
--       as 'dem.tif', or a pattern such as 'tiles/*.tif', of which each file is a grid of its own
--       and the result has a column file_name; a file needs no row a cell
-- scales, steps: sides of the patches, and from a patch to the next (NULL: half the side)
-- example_scale, example_step: the same for the examples (NULL: as far as an example reaches)
-- methods: of 'pca' 'stat' 'pca_ternary' 'stat_centred', or your own of spatialq.pops_method
-- min_valid, min_points: share and number of the cells of a patch that must have a value
-- min_patches: patches of an example that must have features
-- quantiles: 'median_unbiased' or 'linear'
-- nodata, band: of a file, as for read_grid; device: 'auto', 'cpu' or 'gpu'
-- gives: example_id x y method scale feature mean variance skewness kurtosis min q1 median q3 max
--        patches
-- example: FROM pops_features('dem.tif', scales := [300, 400, 500]) WHERE feature = 'pca1'
-- example: PIVOT (FROM pops_features(cells)) ON feature || scale USING first(median) GROUP BY x, y
CREATE OR REPLACE MACRO pops_features(
    grid,
    scales := [300, 400, 500],
    steps := NULL,
    example_scale := 2000,
    example_step := NULL,
    methods := ['pca', 'stat'],
    min_valid := 0.5,
    min_points := 3,
    min_patches := 1,
    quantiles := 'median_unbiased',
    nodata := NULL,
    band := 1,
    device := 'auto'
) AS TABLE
FROM query(
    pops_features_sql(
        grid::VARCHAR,
        nodata,
        band,
        to_json({
            scales: scales,
            steps: steps,
            example_scale: example_scale,
            example_step: example_step,
            methods: methods,
            min_valid: min_valid,
            min_points: min_points,
            min_patches: min_patches,
            quantiles: quantiles,
            device: device
        })
    )
);
