-- The samples of a node that spatialq lod --compact packed into bytes: a list of structs x y z red
-- green blue, in the order of build_lod. Positions are those of build_lod, bit for bit; colours of
-- voxels have 8 bits. NULL if an argument is NULL.
-- packed: The node's column packed.
-- xmin: The node's column.
-- ymin: The node's column.
-- zmin: The node's column.
-- size: The node's column.
-- example: SELECT unnest(lod_samples('\x01\x00\x01\x03\x05\x05\x06\x06\x07\x07'::BLOB, 0, 0, 0, 2), recursive := true)
CREATE OR REPLACE MACRO lod_samples(packed, xmin, ymin, zmin, size) AS spatialq_lod_samples_udf(
    CASE WHEN typeof(packed) IN ('BLOB', '"NULL"') THEN packed::BLOB
    ELSE spatialq_refuse('lod_samples: packed must be of type BLOB, got type ', typeof(packed))::BLOB END,
    spatialq_number('lod_samples: xmin must be a number, got ', xmin),
    spatialq_number('lod_samples: ymin must be a number, got ', ymin),
    spatialq_number('lod_samples: zmin must be a number, got ', zmin),
    spatialq_number('lod_samples: size must be a number, got ', size)
);
