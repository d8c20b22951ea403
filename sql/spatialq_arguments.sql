-- What an error says about a value: at most 80 characters of it, and its type.
-- value: Of any type.
-- example: SELECT spatialq_shown(5)
CREATE OR REPLACE MACRO spatialq_shown(value) AS spatialq_shown_udf(typeof(value), value::VARCHAR);

-- Whether a value is of a type of numbers, or NULL without a type.
-- value: Of any type.
-- example: SELECT spatialq_is_number(0.5)
CREATE OR REPLACE MACRO spatialq_is_number(value) AS regexp_full_match(
    typeof(value),
    '"NULL"|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*|BIGNUM'
);

-- An argument of a macro as text.
-- sentence: The error about a value of another type, such as 'f: model must be text, got '.
-- value: The argument.
-- example: SELECT spatialq_text('f: model must be text, got ', 'projection')
CREATE OR REPLACE MACRO spatialq_text(sentence, value) AS CASE
    WHEN regexp_full_match(typeof(value), 'VARCHAR|"NULL"|JSON|ENUM.*') THEN value::VARCHAR
    ELSE spatialq_refuse(sentence, spatialq_shown(value))::VARCHAR END;

-- An argument of a macro as the name of a table, which must be given.
-- sentence: The error about a value of another type, NULL, or a file that spatialq reads.
-- value: The argument.
-- example: SELECT spatialq_name('f: points must be the name of a table, got ', 'points')
CREATE OR REPLACE MACRO spatialq_name(sentence, value) AS spatialq_table_name(sentence, coalesce(
    nullif(spatialq_text(sentence, value), ''),
    spatialq_refuse(sentence, if(value IS NULL, 'NULL', ''''''))::VARCHAR
));

-- An argument of a macro that names a table or a file, or lists files, as JSON.
-- sentence: The error about a value of another type.
-- value: The argument.
-- example: SELECT spatialq_tables('f: points must be the name of a table, got ', ['a.laz', 'b.laz'])
CREATE OR REPLACE MACRO spatialq_tables(sentence, value) AS spatialq_tables_udf(
    sentence, typeof(value), value::VARCHAR, TRY_CAST(value AS VARCHAR[])
);

-- An argument of a macro as a number.
-- sentence: The error about a value of another type.
-- value: The argument.
-- example: SELECT spatialq_number('f: d must be a number, got ', 0.5)
CREATE OR REPLACE MACRO spatialq_number(sentence, value) AS CASE
    WHEN spatialq_is_number(value) THEN TRY_CAST(value AS DOUBLE)
    ELSE spatialq_refuse(sentence, spatialq_shown(value))::DOUBLE END;

-- An argument of a macro as a length, which must be given.
-- sentence: The error about a value of another type, NULL, or a number that is negative or infinite.
-- value: The argument.
-- example: SELECT spatialq_length('f: d must be >= 0 metres, got ', 0.5)
CREATE OR REPLACE MACRO spatialq_length(sentence, value) AS CASE
    WHEN isfinite(spatialq_number(sentence, value)) AND spatialq_number(sentence, value) >= 0
    THEN spatialq_number(sentence, value)
    ELSE spatialq_refuse(sentence, coalesce(value::VARCHAR, 'NULL'))::DOUBLE END;

-- An argument of a macro as a whole number; 2.0 is one.
-- sentence: The error about a value of another type or out of range.
-- value: The argument.
-- least: The least that it may be.
-- most: The largest that it may be.
-- example: SELECT spatialq_whole('f: k must be a whole number from 1 to 100, got ', 7, 1, 100)
CREATE OR REPLACE MACRO spatialq_whole(sentence, value, least, most) AS CASE
    WHEN value IS NULL THEN NULL::BIGINT
    WHEN spatialq_is_number(value) AND TRY_CAST(value AS HUGEINT) BETWEEN least AND most
        AND TRY_CAST(value AS HUGEINT)::DOUBLE = TRY_CAST(value AS DOUBLE)
    THEN TRY_CAST(value AS BIGINT)
    WHEN spatialq_is_number(value) THEN spatialq_refuse(sentence, value::VARCHAR)
    ELSE spatialq_refuse(sentence, spatialq_shown(value)) END;

-- An argument of a macro as true or false.
-- sentence: The error about a value of another type.
-- value: The argument.
-- example: SELECT spatialq_truth('f: strict must be true or false, got ', false)
CREATE OR REPLACE MACRO spatialq_truth(sentence, value) AS CASE
    WHEN typeof(value) IN ('BOOLEAN', '"NULL"') THEN TRY_CAST(value AS BOOLEAN)
    ELSE spatialq_refuse(sentence, spatialq_shown(value)) = 0 END;

-- An argument of a macro as a list of numbers.
-- sentence: The error about a value of another type.
-- value: The argument.
-- example: SELECT spatialq_numbers('f: bounds must be four numbers, got ', [0, 0, 100, 100])
CREATE OR REPLACE MACRO spatialq_numbers(sentence, value) AS CASE
    WHEN regexp_full_match(typeof(value), '"NULL"|.*\]') THEN TRY_CAST(value AS DOUBLE[])
    ELSE [spatialq_refuse(sentence, spatialq_shown(value))]::DOUBLE[] END;

-- An argument of a macro as a list of texts.
-- sentence: The error about a value of another type.
-- value: The argument.
-- example: SELECT spatialq_texts('f: columns must be a list of names, got ', ['x', 'y'])
CREATE OR REPLACE MACRO spatialq_texts(sentence, value) AS CASE
    WHEN regexp_full_match(typeof(value), '"NULL"|(VARCHAR|"NULL"|JSON|ENUM.*)\[\d*\]')
    THEN TRY_CAST(value AS VARCHAR[])
    ELSE [spatialq_refuse(sentence, spatialq_shown(value))::VARCHAR] END;

-- An argument of a macro as JSON.
-- sentence: The error about a value of another type, or text that is no JSON.
-- value: The argument.
-- example: SELECT spatialq_json('f: value must be JSON, got ', '{"a": 1}')
CREATE OR REPLACE MACRO spatialq_json(sentence, value) AS CASE
    WHEN coalesce(json_valid(spatialq_text(sentence, value)), true) THEN TRY_CAST(value AS JSON)
    ELSE spatialq_refuse(sentence, spatialq_shown(value))::VARCHAR::JSON END;

-- An argument of a macro as a mesh.
-- sentence: The error about a value of another type.
-- value: The argument.
-- example: SELECT spatialq_mesh('f: one must be a mesh, got ', mesh) FROM elements
CREATE OR REPLACE MACRO spatialq_mesh(sentence, value) AS CASE
    WHEN regexp_full_match(typeof(value), '"NULL"|STRUCT.*\)')
    THEN TRY_CAST(value AS STRUCT(vertices DOUBLE[], faces INTEGER[]))
    WHEN spatialq_refuse(sentence, spatialq_shown(value)) > 0 THEN NULL END;
