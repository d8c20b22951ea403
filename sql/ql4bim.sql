-- The rows of a QL4BIM script: of its result, or of another variable. docs/ql4bim.md has the
-- language.
-- script: The script, or a file, whose name ends in .ql4bim.
-- variable: One of its variables; NULL stands for that of the last statement.
-- model: The file for the one ImportModel of the script, instead of what it names.
-- example: SELECT name FROM ql4bim('m = ImportModel("house.ifc")  w = TypeFilter(m is IfcWall)')
CREATE OR REPLACE MACRO ql4bim(script, variable := NULL, model := NULL) AS TABLE
FROM query(spatialq_ql4bim_sql(script::VARCHAR, variable::VARCHAR, model::VARCHAR));
