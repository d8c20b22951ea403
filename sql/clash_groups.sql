-- What grouped_clashes gives, for whichever macro was given the table.
-- caller: The macro, such as 'clash_groups'.
-- clashes, per, distance: Its arguments.
-- example: FROM spatialq_grouped_clashes('clash_groups', 'clashes', 'element', 1.0)
CREATE OR REPLACE MACRO spatialq_grouped_clashes(caller, clashes, per, distance) AS TABLE
WITH asked AS (
    SELECT
        coalesce(spatialq_text(caller || ': per must be text, got ', per), 'element') AS way,
        -- a JSON pointer: '*', '' or '$.a' would be paths that mean something else
        '/' || replace(replace(way, '~', '~0'), '/', '~1') AS own_key,
        '/a_' || own_key[2:] AS a_key, '/b_' || own_key[2:] AS b_key
),
given AS (
    SELECT
        spatialq_row AS own, to_json(spatialq_row) AS j, row_number() OVER () AS n,
        spatialq_row.a::VARCHAR AS a, spatialq_row.b::VARCHAR AS b
    FROM query(spatialq_rows_sql(
        caller || ': clashes',
        spatialq_name(caller || ': clashes must be the name of a table, got ', clashes),
        ['a', 'b']
    )) AS spatialq_row
),
-- materialized, so that it is asked where there are no rows, too
checked AS MATERIALIZED (
    SELECT
        way, own_key, a_key, b_key, json_exists(names, own_key) AS is_column,
        CASE
            WHEN way IN ('element', 'space') OR is_column OR json_exists(names, a_key) THEN true
            ELSE spatialq_refuse(
                caller || ': per must be ''element'', ''space'' or a column of the clashes such as ''storey'', got ',
                '''' || way || ''''
            ) > 0
        END AS is_known
    FROM asked CROSS JOIN (
        SELECT to_json(spatialq_row) AS names
        FROM (SELECT 1) LEFT JOIN (SELECT unnest(own) FROM given LIMIT 0) AS spatialq_row ON true
    )
),
said AS (
    SELECT *, (j ->> 'penetration')::DOUBLE AS penetration
    FROM given CROSS JOIN checked
    WHERE is_known
),
degrees AS (
    SELECT element, count(*) AS degree
    FROM (SELECT unnest([a, b]) AS element FROM said WHERE way = 'element')
    GROUP BY element
),
clustered AS (
    SELECT unnest(list(n ORDER BY n)) AS n, unnest(spatialq_clusters(
        list((j ->> 'x')::DOUBLE ORDER BY n), list((j ->> 'y')::DOUBLE ORDER BY n),
        list((j ->> 'z')::DOUBLE ORDER BY n),
        spatialq_length(caller || ': distance must be >= 0 metres, got ', distance)
    )) AS cluster
    FROM said
    WHERE way = 'space'
),
keyed AS (
    SELECT s.*, CASE
        WHEN way = 'element'
        THEN if(p.degree > q.degree OR (p.degree = q.degree AND a < b), a, b)
        WHEN way = 'space' THEN cluster::VARCHAR
        WHEN is_column THEN j ->> own_key
        ELSE array_to_string(list_sort(list_distinct([j ->> a_key, j ->> b_key])), ' / ')
    END AS key
    FROM said AS s
    LEFT JOIN degrees AS p ON p.element = s.a
    LEFT JOIN degrees AS q ON q.element = s.b
    LEFT JOIN clustered AS c USING (n)
),
groups AS (
    SELECT
        key, max(penetration) AS deepest, count(*) AS clashes, any_value(way) AS way,
        min_by(least(a, b) || ' / ' || greatest(a, b), (-coalesce(penetration, '-inf'::DOUBLE), least(a, b), greatest(a, b))) AS pair
    FROM keyed
    GROUP BY key
),
numbered AS (
    SELECT
        key, if(way = 'space', pair, key) AS group_name,
        row_number() OVER (ORDER BY deepest DESC NULLS LAST, clashes DESC, pair, key) AS group_id
    FROM groups
)
SELECT unnest(own), group_id, group_name
FROM keyed JOIN numbered ON keyed.key IS NOT DISTINCT FROM numbered.key
ORDER BY n;

-- Clashes with the group that each belongs to: group_id, 1 for the group with the deepest clash, and
-- group_name.
-- clashes: Name of a table or view of rows as intersects_with and spatialq clash give them.
-- per: 'element', that of the two with more clashes; 'space', clusters of clashes; or a column, such as
--     'relation', or one that a and b have, such as 'storey' for a_storey and b_storey.
-- distance: Of 'space': from one clash of a cluster to the next, at most. (metres; >= 0)
-- gives: the columns of clashes, group_id group_name: GlobalId of the element, value of the column, or of
--     'space' the GlobalIds of the deepest clash
-- example: SELECT group_name, a, b FROM grouped_clashes('clashes', per := 'element')
CREATE OR REPLACE MACRO grouped_clashes(clashes, per := 'element', distance := 1.0) AS TABLE
FROM spatialq_grouped_clashes('grouped_clashes', clashes, per, distance);

-- Groups of clashes, the one with the deepest clash first: what to talk about, and one clash of each to
-- look at.
-- clashes: Name of a table or view of rows as intersects_with and spatialq clash give them.
-- per: 'element', that of the two with more clashes; 'space', clusters of clashes; or a column, such as
--     'relation', or one that a and b have, such as 'storey' for a_storey and b_storey.
-- distance: Of 'space': from one clash of a cluster to the next, at most. (metres; >= 0)
-- gives: group_id group_name clashes elements penetration volume a b relation x y z: number of clashes and of
--     elements; the largest penetration; the sum of volume where clashes has it; the deepest clash
-- example: SELECT group_name, clashes, penetration FROM clash_groups('clashes', per := 'space', distance := 2)
CREATE OR REPLACE MACRO clash_groups(clashes, per := 'element', distance := 1.0) AS TABLE
SELECT
    group_id, group_name, count(*) AS clashes, len(list_distinct(flatten(list([a, b])))) AS elements,
    max(penetration) AS penetration, sum(volume) AS volume, unnest(min_by(
        {a: a, b: b, relation: relation, x: x, y: y, z: z},
        (-coalesce(penetration, '-inf'::DOUBLE), least(a, b), greatest(a, b))
    ))
FROM (
    SELECT
        group_id, group_name, a, b, j ->> 'relation' AS relation,
        (j ->> 'penetration')::DOUBLE AS penetration, (j ->> 'volume')::DOUBLE AS volume,
        (j ->> 'x')::DOUBLE AS x, (j ->> 'y')::DOUBLE AS y, (j ->> 'z')::DOUBLE AS z
    FROM (
        SELECT group_id, group_name, a::VARCHAR AS a, b::VARCHAR AS b, to_json(spatialq_row) AS j
        FROM spatialq_grouped_clashes('clash_groups', clashes, per, distance) AS spatialq_row
    )
)
GROUP BY group_id, group_name
ORDER BY group_id;

-- How many clashes there are between what: the clash matrix of trades or of classes, as rows.
-- clashes: Name of a table or view of rows as spatialq clash gives them.
-- per: A column that a and b have, such as 'class' for a_class and b_class, 'file', 'storey' or 'name'.
-- gives: one other clashes penetration: two values in any order, the first in alphabetical order, and equal
--     for what clashes among itself; the number of clashes; the largest penetration
-- example: FROM clash_matrix('named_clashes', per := 'class') ORDER BY clashes DESC
CREATE OR REPLACE MACRO clash_matrix(clashes, per := 'class') AS TABLE
WITH asked AS (
    SELECT
        coalesce(spatialq_text('clash_matrix: per must be text, got ', per), 'class') AS way,
        -- a JSON pointer: names may have signs that mean something in paths
        replace(replace(way, '~', '~0'), '/', '~1') AS key
),
-- materialized, so that it is asked where there are no rows, too
checked AS MATERIALIZED (
    SELECT
        '/a_' || key AS a_key, '/b_' || key AS b_key,
        CASE WHEN json_exists(names, a_key) AND json_exists(names, b_key) THEN true
            ELSE spatialq_refuse(
                'clash_matrix: per must be a column that a and b have, such as ''class'' or ''file'', got ',
                '''' || way || ''''
            ) > 0
        END AS is_known
    FROM asked CROSS JOIN (
        SELECT to_json(t) AS names
        FROM (SELECT 1) LEFT JOIN (
            FROM query_table(
                spatialq_name('clash_matrix: clashes must be the name of a table, got ', clashes)
            ) LIMIT 0
        ) AS t ON true
    )
),
sides AS (
    SELECT
        coalesce(j ->> a_key, '') AS a, coalesce(j ->> b_key, '') AS b,
        (j ->> 'penetration')::DOUBLE AS penetration
    FROM (
        SELECT to_json(t) AS j
        FROM query_table(
            spatialq_name('clash_matrix: clashes must be the name of a table, got ', clashes)
        ) AS t
    ) CROSS JOIN checked
    WHERE is_known
)
SELECT
    least(a, b) AS one, greatest(a, b) AS other, count(*) AS clashes,
    max(penetration) AS penetration
FROM sides
GROUP BY ALL
ORDER BY one, other;
