-- The devices of this machine: the CPU and the GPUs that CUDA_VISIBLE_DEVICES leaves; and whether the
-- extension of spatialq brings rows to them.
-- gives: device name cores memory_bytes free_bytes usable problem number
-- example: FROM spatialq_devices()
CREATE OR REPLACE MACRO spatialq_devices() AS TABLE
SELECT unnest(spatialq_devices_udf(0), recursive := true);

-- The last thousand kernel calls of this process and of earlier ones that had this database open: what
-- ran where, why, and for how long.
-- gives: at (UTC) function row_count device reason estimated_seconds seconds error transport transport_seconds
-- example: FROM spatialq_log() ORDER BY "at" DESC LIMIT 5
CREATE OR REPLACE MACRO spatialq_log() AS TABLE
SELECT unnest(spatialq_log_udf(0), recursive := true);

-- The device that a call with default parameters and so many rows would run on, and why.
-- function: Name of a spatial function.
-- row_count: Rows of its input.
-- device: 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1', as in the call.
-- gives: device chosen estimated_seconds memory_bytes reason number
-- example: FROM spatialq_plan('owm_ground', 20_000_000)
CREATE OR REPLACE MACRO spatialq_plan(function, row_count, device := 'auto') AS TABLE
SELECT unnest(
    spatialq_plan_udf(
        spatialq_text('spatialq_plan: function must be the name of a function, got ', function),
        spatialq_whole('spatialq_plan: row_count must be a whole number, got ', row_count, -9223372036854775808, 9223372036854775807),
        spatialq_text('spatialq_plan: device must be ''auto'', ''cpu'', ''gpu'' or one GPU such as ''gpu:1'', got ', device)
    ),
    recursive := true
);
