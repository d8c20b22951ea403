"""Chains, and the SQL that a person would write for them."""

import spatialq as sq

ROOM = "650010, 5600010, 650030, 5600030"


def ground(con):
    return (
        sq.read_las(con, "tile.laz")
        .within((650010, 5600010, 650030, 5600030))
        .classify_ground(object_width=40)
        .where("height > 2")
    )


def ground_and_planes(con):
    return sq.read_las(con, "tile.laz").classify_ground().plane_points(phi_num=45)


def ground_twice(con):
    return sq.read_las(con, "tile.laz").classify_ground().classify_ground(cell_size=0)


def heights(con):
    return (
        sq.table(con, "points")
        .classify_ground()
        .aggregate("count(*) AS n", "max(height) AS top", group="is_ground")
        .order("n DESC")
        .limit(2)
    )


def clash(con):
    walls = sq.read_ifc(con, "house.ifc").is_a("IfcWall").storey("ground floor").alias("walls")
    slabs = sq.read_ifc(con, "house.ifc").is_a("IfcSlab").alias("slabs")
    return walls.intersects_with(slabs, tolerance=0.002)


def related(con):
    return sq.read_ifc(con, "house.ifc").spatial_relations(exclude="default")


def near_doors(con):
    return sq.table(con, "elements").is_a("IfcDoor").closer_than("elements", 0.5)


def external(con):
    chosen = "IfcWall, Pset_WallCommon.IsExternal=TRUE, material=/.*block/"
    return sq.read_ifc(con, "house.ifc").elements_where(chosen).where("volume > 1")


def beside(con):
    return sq.table(con, "elements").elements_where("IfcWall").select("name", "volume")


def several_conditions(con):
    points = sq.table(con, "points")
    return points.where("z > 101 OR x < 1 -- low", "y > 0").where("NOT z > 200").distinct()


def columns_made(con):
    points = sq.table(con, "points").select("point_id", "x", "y", "z")
    return points.with_columns(z="z * 2", high="z > 100").where("high").order("z")


def walls_that_touch(con):
    house = sq.read_ifc(con, "house.ifc")
    walls, slabs = house.is_a("IfcWall").alias("walls"), house.is_a("IfcSlab").alias("slabs")
    return walls.touches(slabs).elements("a").select("name").order("name")


def features(con):
    return sq.read_grid(con, "hill.tif").pops_features(scales=[20.0], steps=[4.0], example_scale=20)


GOLDEN = {
    ground: f"""\
WITH tile AS (
    FROM read_las('tile.laz', bounds := [{ROOM}])
)
FROM tile JOIN classify_ground('tile', object_width := 40) USING (point_id)
WHERE height > 2""",
    ground_and_planes: """\
WITH tile AS (
    FROM read_las('tile.laz')
)
FROM tile JOIN classify_ground('tile.laz') USING (point_id) \
JOIN plane_points('tile.laz', phi_num := 45) USING (point_id)""",
    ground_twice: """\
WITH tile AS (
    FROM read_las('tile.laz')
), tile_2 AS (
    FROM tile JOIN classify_ground('tile.laz') USING (point_id)
)
SELECT * EXCLUDE (tile_2.height, tile_2.is_ground, tile_2.margin)
FROM tile_2 JOIN classify_ground('tile_2', cell_size := 0) USING (point_id)""",
    heights: """\
SELECT is_ground, count(*) AS n, max(height) AS top
FROM points JOIN classify_ground('points') USING (point_id)
GROUP BY ALL
ORDER BY n DESC
LIMIT 2""",
    clash: """\
WITH walls AS (
    FROM read_ifc('house.ifc')
    WHERE is_a(ifc_class, 'IfcWall')
    AND storey = 'ground floor'
), slabs AS (
    FROM read_ifc('house.ifc')
    WHERE is_a(ifc_class, 'IfcSlab')
)
FROM intersects_with('walls', 'slabs', tolerance := 0.002)""",
    related: """\
WITH house AS (
    FROM read_ifc('house.ifc')
), house_objects AS (
    FROM read_ifc_objects('house.ifc')
), house_relations AS (
    FROM read_ifc_relations('house.ifc')
)
FROM spatial_relations('house', exclude := 'default', relations := 'house_relations')""",
    near_doors: """\
WITH elements_2 AS (
    FROM elements
    WHERE is_a(ifc_class, 'IfcDoor')
)
FROM closer_than('elements_2', 'elements', 0.5)""",
    external: """\
WITH house AS (
    FROM read_ifc('house.ifc')
), house_objects AS (
    FROM read_ifc_objects('house.ifc')
), house_materials AS (
    FROM read_ifc_materials('house.ifc')
)
FROM elements_where('IfcWall, Pset_WallCommon.IsExternal=TRUE, material=/.*block/', \
'house', 'house_objects')
WHERE volume > 1""",
    beside: """\
SELECT name, volume
FROM elements_where('IfcWall', 'elements')""",
    several_conditions: """\
SELECT DISTINCT *
FROM points
WHERE (z > 101 OR x < 1 -- low
)
AND y > 0
AND NOT z > 200""",
    columns_made: """\
WITH points_2 AS (
    SELECT point_id, x, y, z
    FROM points
), points_3 AS (
    SELECT * REPLACE (z * 2 AS z), z > 100 AS high
    FROM points_2
)
FROM points_3
WHERE high
ORDER BY z""",
    walls_that_touch: """\
WITH walls AS (
    FROM read_ifc('house.ifc')
    WHERE is_a(ifc_class, 'IfcWall')
), slabs AS (
    FROM read_ifc('house.ifc')
    WHERE is_a(ifc_class, 'IfcSlab')
), touches AS (
    FROM touches('walls', 'slabs')
)
SELECT name
FROM walls AS e SEMI JOIN touches AS p ON p.a = e.global_id
ORDER BY name""",
    features: """\
WITH hill AS (
    FROM read_grid('hill.tif')
)
FROM pops_features('hill', scales := [20.0], steps := [4.0], example_scale := 20)""",
}
