-- The nodes of a level-of-detail tree that a viewer needs for a view, and which octants of each it
-- draws. A child replaces the voxels of its parent in its octant where these would cover more than
-- `pixels` pixels. Nodes outside the view are left out, except for some at its very edges.
-- lod: Name of a table or view as build_lod gives it, or a file of it such as 'nodes.parquet'.
-- camera: A struct {eye: [x, y, z], target: [x, y, z]}; optional are up (default [0, 0, 1]), fov
--     (degrees from bottom to top, default 60) or view_height (for a parallel view, in the unit of
--     x, y and z), width and height (pixels, default 1920 and 1080), near (default 0) and far.
-- pixels: Number of pixels that a voxel may cover from side to side, as a square that faces the
--     viewer.
-- max_samples: Maximum number of samples; the view becomes coarser to keep it. The root is given in
--     any case if it is in view.
-- gives: all columns of lod; pixels (how many a voxel covers at most; NULL for points); octants
--     (bit c is set where child c is not drawn, so that the node's own samples in that octant are drawn;
--     255 for a leaf, and for an inner node without a child in lod, such as after WHERE level < 3)
-- example: SELECT node, pixels, octants, samples FROM lod_select('lod', {eye: [0, 0, 90], target: [50, 50, 0]})
-- example: SELECT sum("count") FROM lod_select('lod', {eye: [50, 50, 90], target: [50, 50, 0], up: [0, 1, 0], view_height: 100}, max_samples := 1_000_000)
CREATE OR REPLACE MACRO lod_select(lod, camera, pixels := 1.0, max_samples := NULL) AS TABLE
-- lod_nodes comes first: so nothing of this query is taken for the table, whatever that is called
WITH lod_nodes AS NOT MATERIALIZED (
    FROM query(spatialq_rows_sql(
        'lod_select: lod',
        spatialq_name('lod_select: lod must be the name of a table, got ', lod),
        ['node', 'parent', 'level', 'xmin', 'ymin', 'zmin', 'size', 'spacing', 'is_leaf', 'count']
    ))
),
lod_view AS MATERIALIZED (
    SELECT spatialq_lod_select_udf(
        to_json({camera: camera, pixels: pixels, max_samples: max_samples})
    ) AS v
),
lod_checked AS MATERIALIZED (
    SELECT if(
        max(n.times) > 1,
        error('lod_select: node must be unique in lod, which is one tree, got '''
            || arg_max(n.node, n.times) || ''' more than once'),
        true
    ) AS is_tree
    FROM (SELECT m.node, count(*) AS times FROM lod_nodes AS m GROUP BY m.node) AS n
),
lod_parents AS MATERIALIZED (
    SELECT DISTINCT n.parent AS node FROM lod_nodes AS n WHERE n.parent IS NOT NULL
),
-- in view: the corner of the cube that is farthest inwards is inside of each plane
lod_cubes AS MATERIALIZED (
    SELECT n.node, n.parent, n.level, n.spacing, n.is_leaf, n."count", v.max_samples,
        v.pixels AS allowed, inner_node.node IS NULL AS is_end,
        -- least depth of what is before the near plane, the first one, which has d = -near
        v.scale / CASE WHEN v.parallel THEN 1.0 ELSE nullif(greatest(
            v.planes[1].a * (n.xmin - v.x) + v.planes[1].b * (n.ymin - v.y)
                + v.planes[1].c * (n.zmin - v.z)
                + (v.planes[1].a + v.planes[1].b + v.planes[1].c - v.planes[1].reach) * n.size,
            -v.planes[1].d
        ), 0.0) END AS scale
    FROM lod_view, lod_checked,
        lod_nodes AS n LEFT JOIN lod_parents AS inner_node ON inner_node.node = n.node
    WHERE is_tree AND list_bool_and(list_transform(
        v.planes,
        lambda p: p.a * (n.xmin - v.x) + p.b * (n.ymin - v.y) + p.c * (n.zmin - v.z)
            + p.reach * n.size + p.d >= 0
    ))
),
-- covers: pixels of the parent's voxels in the cube, which it replaces; infinite beside the eye
lod_turns AS MATERIALIZED (
    SELECT c.*, coalesce(p.spacing * c.scale, 'inf'::DOUBLE) AS covers,
        row_number() OVER (ORDER BY covers DESC, c.level, c.node) AS turn
    FROM lod_cubes AS c LEFT JOIN lod_cubes AS p ON p.node = c.parent
    WHERE c.parent IS NULL OR p.node IS NOT NULL
),
lod_children AS MATERIALIZED (
    SELECT t.parent AS node, max(t.turn) AS last_turn, min(t.covers) AS least
    FROM lod_turns AS t GROUP BY t.parent
),
-- nodes come by turns, and with them their samples, which go with the last child's turn: an inner
-- node of which no child is in view has none to draw
lod_budget AS MATERIALIZED (
    SELECT max(s.turn) AS last_turn
    FROM (
        SELECT e.turn, e.max_samples, sum(e.change) OVER (ORDER BY e.turn) AS total
        FROM (
            SELECT t.turn, t.max_samples,
                if(t.is_end OR k.node IS NOT NULL, t."count", 0) AS change
            FROM lod_turns AS t LEFT JOIN lod_children AS k ON k.node = t.node
            WHERE t.covers > t.allowed
            UNION ALL
            SELECT k.last_turn, t.max_samples, -t."count" FROM lod_turns AS t
            JOIN lod_children AS k ON k.node = t.node
            WHERE k.least > t.allowed
        ) AS e
    ) AS s
    WHERE s.turn = 1 OR s.max_samples IS NULL OR s.total <= s.max_samples
),
lod_drawn AS MATERIALIZED (
    SELECT t.*, t.covers > t.allowed AND t.turn <= b.last_turn AS is_drawn
    FROM lod_turns AS t, lod_budget AS b
),
lod_octants AS (
    SELECT d.node, 255 AS octants,
        CASE WHEN NOT d.is_leaf THEN coalesce(d.spacing * d.scale, 'inf'::DOUBLE) END AS pixels
    FROM lod_drawn AS d
    WHERE d.is_drawn AND d.is_end
    UNION ALL
    SELECT d.parent, bit_or(1 << right(d.node, 1)::INTEGER), max(d.covers) FROM lod_drawn AS d
    JOIN lod_drawn AS p ON p.node = d.parent
    WHERE p.is_drawn AND NOT d.is_drawn
    GROUP BY d.parent
)
SELECT n.*, o.pixels, o.octants
FROM lod_nodes AS n JOIN lod_octants AS o ON o.node = n.node;
