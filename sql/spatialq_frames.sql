-- What is known of the coordinates of a table or view, or of a name that the query gives: a JSON
-- object, as spatialq.database.frames finds it out in the transaction of the query.
-- points: Name of the table, view or query.
-- is_given: Whether the CRS is given: then names of the query are not looked into.
-- gives: frame
-- example: FROM spatialq_frame_of('points', false)
CREATE OR REPLACE MACRO spatialq_frame_of(points, is_given) AS TABLE
FROM query(spatialq_frame_sql(points::VARCHAR, is_given));
