WITH model AS (
    FROM read_ifc_objects('house.ifc')
)
SELECT obj.global_id AS object, unnest(
    CASE json_type(obj.attributes, '$.OverallHeight')
    WHEN 'ARRAY' THEN json_extract_string(obj.attributes, '$.OverallHeight[*]')
    ELSE [(obj.attributes ->> '$.OverallHeight')] END
) AS height
FROM model AS obj WHERE (obj.attributes ->> '$.OverallHeight') IS NOT NULL
