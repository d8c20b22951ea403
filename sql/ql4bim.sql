-- The rows of a QL4BIM script: of its result, or of another variable. docs/ql4bim.md has the
-- language.
-- script: The script, or a file, whose name ends in .ql4bim.
-- variable: One of its variables; NULL stands for that of the last statement.
-- model: The file for the one ImportModel of the script, instead of what it names.
-- example: SELECT name FROM ql4bim('m = ImportModel("house.ifc")  w = TypeFilter(m is IfcWall)')
CREATE OR REPLACE MACRO ql4bim(script, variable := NULL, model := NULL) AS TABLE
FROM query(
    spatialq_ql4bim_sql(
        spatialq_text('ql4bim: script must be a script or a file, got ', script),
        spatialq_text('ql4bim: variable must be the name of a variable, got ', variable),
        spatialq_text('ql4bim: model must be a file, got ', model)
    )
);

-- A date and time of IFC2X3, whose parts are objects, as text: '2024-05-01T08:00:00', as later schemas
-- have it. Texts stay as they are.
-- value: IfcDateAndTime or IfcCalendarDate as JSON, as the attributes of objects have it.
-- example: SELECT ifc_date('{"YearComponent": 2024, "MonthComponent": 5, "DayComponent": 1}'::JSON)
CREATE OR REPLACE MACRO ifc_date(value) AS list_transform(
    [spatialq_json('ifc_date: value must be JSON, got ', value)],
    lambda v: CASE
        WHEN json_type(v) = 'OBJECT' THEN printf(
            '%04d-%02d-%02dT%02d:%02d:%02d',
            coalesce(v ->> '$.DateComponent.YearComponent', v ->> '$.YearComponent')::BIGINT,
            coalesce(v ->> '$.DateComponent.MonthComponent', v ->> '$.MonthComponent')::BIGINT,
            coalesce(v ->> '$.DateComponent.DayComponent', v ->> '$.DayComponent')::BIGINT,
            coalesce((v ->> '$.TimeComponent.HourComponent')::BIGINT, 0),
            coalesce((v ->> '$.TimeComponent.MinuteComponent')::BIGINT, 0),
            coalesce((v ->> '$.TimeComponent.SecondComponent')::DOUBLE, 0)::BIGINT
        )
        ELSE v ->> '$' END
)[1];
