-- Check models by an IDS file (buildingSMART's Information Delivery Specification 1.0): one row per
-- specification, requirement and object that the specification applies to. All objects of the files
-- that the table names are checked, with or without a row in it.
-- elements: The table of elements or objects, whose column file_name names the models.
-- rules: An IDS file (.ids, .xml).
-- gives: specification specification_number requirement requirement_number facet status reason
--     ifc_class name global_id step_id file_name: passed, failed with the reason in a sentence, or
--     not applicable, where the model has no object that the specification is about
-- example: SELECT specification, name, reason FROM check_ids('elements', 'rules.ids') WHERE status = 'failed'
CREATE OR REPLACE MACRO check_ids(elements, rules) AS TABLE
SELECT unnest(spatialq_check_ids(
    (SELECT coalesce(list(DISTINCT t.file_name ORDER BY t.file_name), [])
     FROM query(spatialq_rows_sql(
         'check_ids: elements',
         spatialq_name('check_ids: elements must be the name of a table, got ', elements),
         ['file_name']
     )) AS t),
    spatialq_text('check_ids: rules must be an IDS file, got ', rules)
), max_depth := 2);

-- Check IFC files by an IDS file, without loading them: rows as those of check_ids.
-- path: A file (.ifc, .ifczip) or a glob pattern.
-- rules: An IDS file (.ids, .xml).
-- example: SELECT status, count(*) FROM check_ids_files('house.ifc', 'rules.ids') GROUP BY status
CREATE OR REPLACE MACRO check_ids_files(path, rules) AS TABLE
SELECT unnest(spatialq_check_ids(
    spatialq_ids_models(spatialq_text('check_ids: path must be a file or a pattern, got ', path)),
    spatialq_text('check_ids: rules must be an IDS file, got ', rules)
), max_depth := 2);

-- The specifications of an IDS file: one row each.
-- path: An IDS file (.ids, .xml).
-- example: SELECT specification, applicability, requirements FROM ids_specifications('rules.ids')
CREATE OR REPLACE MACRO ids_specifications(path) AS TABLE
SELECT unnest(spatialq_ids_specifications(
    spatialq_text('ids_specifications: path must be a file, got ', path)
), max_depth := 2);

-- What is doubtful about building models that are loaded: one row per rule and object that breaks it.
-- docs/check.md has the rules.
-- elements: Name of a table of elements as load makes it, with the other tables of the models beside it.
-- gives: rule rule_number requirement reason ifc_class name global_id step_id file_name: reason is a
--     sentence; the object is NULL where a rule is about the model as a whole
-- example: SELECT rule, count(*) FROM model_quality() GROUP BY rule
CREATE OR REPLACE MACRO model_quality(elements := 'elements') AS TABLE
FROM query(spatialq_quality_sql(
    spatialq_name('model_quality: elements must be the name of a table, got ', elements)
));
