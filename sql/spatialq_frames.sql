-- What is known of the coordinates of a table or view, or of a name that the query gives: a JSON
-- object, as spatialq.database.frames finds it out in the transaction of the query.
-- points: Name of the table, view or query.
-- gives: frame
-- example: FROM spatialq_frame_of('points')
CREATE OR REPLACE MACRO spatialq_frame_of(points) AS TABLE
FROM query(spatialq_frame_sql(points::VARCHAR, spatialq_instance(0)));
