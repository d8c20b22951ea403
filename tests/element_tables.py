"""Tables of elements made for the tests of SQL."""

import numpy as np
import pyarrow as pa

CORNERS = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
FACES = np.array(
    [
        (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
        (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
    ],
    np.int32,
)  # fmt: skip
MESH = "STRUCT(vertices DOUBLE[], faces INTEGER[])"


def box(low, high):
    """Vertices and faces of a box, outside counter-clockwise."""
    low, high = np.array(low, float), np.array(high, float)
    return low + CORNERS * (high - low), FACES


def put(con, name, **columns):
    """Make a table of elements: global_id, mesh (boxes, or whatever a mesh may be) and others."""
    meshes = [
        None if mesh is None else {"vertices": np.ravel(mesh[0]), "faces": np.ravel(mesh[1])}
        for mesh in columns.pop("mesh")
    ]
    kind = pa.struct({"vertices": pa.list_(pa.float64()), "faces": pa.list_(pa.int32())})
    incoming = pa.table({**columns, "mesh": pa.array(meshes, kind)})
    con.register("incoming", incoming)
    con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM incoming")
    con.unregister("incoming")


# two walls that overlap by 5 cm, a slab under both, a pipe inside the first wall, the space
# between, its opening, a far column
ROOM = {
    "global_id": ["wall", "wall2", "slab", "pipe", "space", "opening", "column"],
    "ifc_class": [
        "IfcWall", "IfcWall", "IfcSlab", "IfcPipeSegment", "IfcSpace", "IfcOpeningElement",
        "IfcColumn",
    ],
    "mesh": [
        box((0, 0, 0), (4, 0.3, 3)),
        box((3.95, 0, 0), (8, 0.3, 3)),
        box((-1, -1, -0.2), (9, 5, 0)),
        box((1, 0.1, 1), (3, 0.2, 1.1)),
        box((0, 0.3, 0), (8, 4, 3)),
        box((1, -0.1, 0.5), (2, 0.4, 2)),
        box((2, 10, 0), (2.3, 10.3, 3)),
    ],
}  # fmt: skip
ROOM_RELATIONS = [
    ("opening", "wall", "voids", "IfcWall"),
    ("pipe", "wall", "connects", "IfcWall"),
    ("wall", "storey", "contained_in", "IfcBuildingStorey"),
    ("wall2", "storey", "contained_in", "IfcBuildingStorey"),
]


def put_room(con, name="elements"):
    put(con, name, **ROOM)
    con.execute("CREATE OR REPLACE TABLE relations "
                "(child VARCHAR, parent VARCHAR, kind VARCHAR, parent_class VARCHAR)")  # fmt: skip
    con.executemany("INSERT INTO relations VALUES (?, ?, ?, ?)", ROOM_RELATIONS)
