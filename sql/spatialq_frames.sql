-- The text of the query that runs. DuckDB's own function is volatile, and what depends on a volatile
-- function in a correlated subquery would run for each outer row; within a lambda DuckDB does not see
-- that it is.
-- example: SELECT spatialq_query_text()
CREATE OR REPLACE MACRO spatialq_query_text() AS list_transform([1], lambda _: current_query())[1];

-- What is known of the coordinates of a table or view, or of a name that the query gives: a JSON
-- object, as spatialq.database.frames finds it out in the transaction of the query.
-- points: Name of the table, view or query.
-- gives: frame
-- example: FROM spatialq_frame_of('points')
CREATE OR REPLACE MACRO spatialq_frame_of(points) AS TABLE
SELECT
    spatialq_frame(
        points::VARCHAR, spatialq_query_text(), [current_database(), current_schema()],
        t.tables, v.views
    ) AS frame
FROM (
    SELECT list([database_name, schema_name, table_name, comment]) AS tables
    FROM duckdb_tables()
    WHERE comment IS NOT NULL
) AS t, (
    SELECT list([database_name, schema_name, view_name, comment, sql]) AS views
    FROM duckdb_views()
    WHERE NOT internal
) AS v;
