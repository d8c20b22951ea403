-- Features of the patches of a grid (POPS), each patch a row: what pops_features aggregates.
-- grid, scales, steps, example_scale, example_step, methods, min_valid, min_points, min_patches,
-- quantiles, nodata, band, device: those of pops_features
-- gives: example_id method scale px py feature value; px, py: which patch of the example, from 0
-- example: SELECT max(value) FROM pops_patches('dem.tif', methods := ['pca']) WHERE feature = 'pca2'
CREATE OR REPLACE MACRO pops_patches(
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
    pops_patches_sql(
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
