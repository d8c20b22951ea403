-- Classify the ground of a point cloud file and write what was found, file to file.
-- path: LAS, LAZ or COPC file in a projected CRS; outputs: list of files, by their endings:
-- .laz .las the points with their classes, .tif the terrain, .png its relief, .parquet .csv .json
-- resolution, method ('tin' or 'idw'): of the terrain; ground_only: only ground to .laz and .las
-- crs: of a file that does not say or says wrong, such as 'EPSG:25832'
-- object_width, max_distance: metres, see classify_ground; device: 'auto', 'cpu' or 'gpu'
-- gives: points ground_points noise_points device outputs
-- example: FROM write_ground('tile.laz', ['ground.laz', 'terrain.tif'])
CREATE OR REPLACE MACRO write_ground(
    path,
    outputs,
    resolution := 1.0,
    method := 'tin',
    ground_only := false,
    crs := NULL,
    object_width := 60.0,
    max_distance := 0.4,
    device := 'auto'
) AS TABLE
SELECT unnest(
    write_ground_udf(
        path,
        outputs,
        {
            resolution: resolution,
            method: method,
            ground_only: ground_only,
            crs: crs,
            object_width: object_width,
            max_distance: max_distance,
            device: device
        }
    ),
    recursive := true
);
