-- Keeps the columns of a table of points, or the meshes of a table of elements with their R-tree, in
-- memory: functions that are called on this name use them until it is pinned again or unpinned. Where
-- the table has another number of rows, or the name means another table, they do not.
-- table_name: Name of a table or view.
-- columns: Of points: the attributes to keep beside point_id, x, y and z; NULL keeps all that
--     functions have a use for.
-- device: 'cpu' or 'gpu': where to keep them.
-- gives: table_name device row_count columns bytes uses misses pinned_at (UTC)
-- example: FROM spatialq_pin('points')
CREATE OR REPLACE MACRO spatialq_pin(table_name, columns := NULL, device := 'cpu') AS TABLE
FROM query(
    spatialq_pin_sql(
        spatialq_text('spatialq_pin: table_name must be the name of a table, got ', table_name),
        spatialq_texts('spatialq_pin: columns must be a list of names, got ', columns),
        spatialq_text('spatialq_pin: device must be ''cpu'' or ''gpu'', got ', device)
    )
);

-- What is pinned in this database, and when: how much memory it takes, in how many calls it was used,
-- and in how many the table had another number of rows, or the name meant another table.
-- gives: table_name device row_count columns bytes uses misses pinned_at (UTC)
-- example: SELECT table_name, bytes FROM spatialq_pins()
CREATE OR REPLACE MACRO spatialq_pins() AS TABLE
SELECT unnest(spatialq_pins_udf(0), max_depth := 2);

-- Gives up what is pinned under a name, and its memory.
-- table_name: As it was pinned.
-- gives: the row of spatialq_pins, or none
-- example: FROM spatialq_unpin('points')
CREATE OR REPLACE MACRO spatialq_unpin(table_name) AS TABLE
SELECT unnest(
    spatialq_unpin_udf(
        spatialq_text('spatialq_unpin: table_name must be the name of a table, got ', table_name)
    ),
    max_depth := 2
);
