-- The rows of a table of all revisions side by side, which load(..., revision) has put into schemas
-- of their own; by default the files that are in them. Both are as they were committed last.
-- table_name: Name of a table that revisions have, such as 'elements', 'objects' or 'points'; NULL lists their files.
-- gives: revision model, which is the name of the file if rows have one, and the columns of the
--     table; of files table_name path kind row_count loaded_at
-- example: SELECT revision, model, row_count FROM revisions()
CREATE OR REPLACE MACRO revisions(table_name := NULL) AS TABLE
FROM query(spatialq_revisions_sql(
    current_database(),
    spatialq_text('revisions: table_name must be the name of a table, got ', table_name)
));
