-- Run a function on the files of a survey as a job of many tasks, which can be resumed. docs/jobs.md has
-- what functions there are, and what a job is.
-- function: Name of the function, such as 'owm_ground'.
-- path: A file, a pattern such as 'tiles/*.laz', a folder, or a list of these.
-- folder: Gets the parts of the result and the records of the job.
-- executor: 'local', processes of this machine; 'serial', this process alone; or 'ray'.
-- workers: How many there are; NULL takes the cores of this machine, or the GPUs or CPUs of Ray.
-- tile_size: Side of square tiles, of which each is a task: in the unit of x and y, or with its unit,
--     such as '500m'; NULL takes each file as a task.
-- part_format: Of the parts, such as 'parquet'; NULL takes the first that the function has.
-- resume: Whether to go on with the job in the folder: what is done stays.
-- device: 'auto', 'cpu' or 'gpu'.
-- memory: Main memory that all workers of a machine may take together, such as '2GB', or a number of GiB;
--     NULL takes half of what is free.
-- options: A struct of parameters of the function.
-- gives: function points rows parts resumed seconds folder
-- example: FROM cluster_run('owm_ground', 'tiles/*.laz', 'seeds/', options := {'window_size': 10.0})
CREATE OR REPLACE MACRO cluster_run(
    function,
    path,
    folder,
    executor := 'local',
    workers := NULL,
    tile_size := NULL,
    part_format := NULL,
    resume := false,
    device := 'auto',
    memory := NULL,
    options := NULL
) AS TABLE
SELECT unnest(
    spatialq_cluster_run_udf(
        spatialq_text('cluster_run: function must be the name of a function, got ', function),
        spatialq_tables('cluster_run: path must be a file, or a list of files, got ', path),
        spatialq_text('cluster_run: folder must be a folder, got ', folder),
        to_json({
            executor: spatialq_text('cluster_run: executor must be ''local'', ''serial'' or ''ray'', got ', executor),
            workers: spatialq_whole('cluster_run: workers must be a whole number from 1 to 100000, got ', workers, 1, 100000),
            tile_size: tile_size,
            part_format: spatialq_text('cluster_run: part_format must be text such as ''parquet'', got ', part_format),
            resume: spatialq_truth('cluster_run: resume must be true or false, got ', resume),
            device: spatialq_text('cluster_run: device must be ''auto'', ''cpu'' or ''gpu'', got ', device),
            memory: memory,
            options: options
        })::VARCHAR
    ),
    recursive := true
);

-- The jobs in a folder and in the folders in it: what they do, and how far they are. started and active are
-- in UTC. elapsed has the seconds of the last run, rest an estimate of the seconds that the stage of a running
-- job still takes.
-- folder: A folder of jobs, or of one.
-- gives: folder function state stage done tasks started active elapsed rest parts points rows inputs source
--     options
-- example: SELECT folder, done, tasks, rest FROM cluster_jobs('.')
CREATE OR REPLACE MACRO cluster_jobs(folder := '.') AS TABLE
SELECT unnest(
    spatialq_cluster_jobs_udf(spatialq_text('cluster_jobs: folder must be a folder, got ', folder)),
    recursive := true
);

-- The rows of a job that is done: one table over its parts, in no order.
-- folder: Of the job.
-- example: SELECT count(*) FROM cluster_table('seeds/')
CREATE OR REPLACE MACRO cluster_table(folder) AS TABLE
FROM query(
    spatialq_cluster_table_sql(spatialq_text('cluster_table: folder must be a folder, got ', folder))
);
