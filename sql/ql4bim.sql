-- The rows of a QL4BIM script: of its result, or of another variable. docs/ql4bim.md has the
-- language.
-- script: The script, or a file, whose name ends in .ql4bim.
-- variable: One of its variables; NULL stands for that of the last statement.
-- model: The file for the one ImportModel of the script, instead of what it names.
-- example: SELECT name FROM ql4bim('m = ImportModel("house.ifc")  w = TypeFilter(m is IfcWall)')
CREATE OR REPLACE MACRO ql4bim(script, variable := NULL, model := NULL) AS TABLE
FROM query(spatialq_ql4bim_sql(script::VARCHAR, variable::VARCHAR, model::VARCHAR));

-- A date and time of IFC2X3, whose parts are objects, as text: '2024-05-01T08:00:00', as later schemas
-- have it. Texts stay as they are.
-- value: IfcDateAndTime or IfcCalendarDate as JSON, as the attributes of objects have it.
-- example: SELECT ifc_date('{"YearComponent": 2024, "MonthComponent": 5, "DayComponent": 1}'::JSON)
CREATE OR REPLACE MACRO ifc_date(value) AS CASE
    WHEN json_type(value) = 'OBJECT' THEN printf(
        '%04d-%02d-%02dT%02d:%02d:%02d',
        coalesce(value ->> '$.DateComponent.YearComponent', value ->> '$.YearComponent')::BIGINT,
        coalesce(value ->> '$.DateComponent.MonthComponent', value ->> '$.MonthComponent')::BIGINT,
        coalesce(value ->> '$.DateComponent.DayComponent', value ->> '$.DayComponent')::BIGINT,
        coalesce((value ->> '$.TimeComponent.HourComponent')::BIGINT, 0),
        coalesce((value ->> '$.TimeComponent.MinuteComponent')::BIGINT, 0),
        coalesce((value ->> '$.TimeComponent.SecondComponent')::DOUBLE, 0)::BIGINT
    )
    ELSE value ->> '$' END;
