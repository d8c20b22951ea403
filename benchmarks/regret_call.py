"""One call for regret.py, by Python or by SQL. Imports little, as a new process begins with it."""

import time

import numpy as np
import pyarrow as pa

import spatialq
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import (
    ElementsInput,
    GridInput,
    PointsAndElementsInput,
    PointsAndTableInput,
)
from spatialq.planner import log, rates
from spatialq.planner.plan import plan_call
from spatialq.planner.statistics import size_of

MACROS = {"direction": "above"}
MESH = pa.struct({"vertices": pa.list_(pa.float64()), "faces": pa.list_(pa.int32())})


def measured(name, arguments, options, way, device):
    """Seconds and estimate of a first call, and the device that the planner takes."""
    call = Call(name, arguments, options, way)
    chosen = call.planned().device
    started = time.perf_counter()
    entry = call(device)
    seconds = time.perf_counter() - started
    return {"measured": seconds, "estimated": expected(entry), "chosen": chosen}


def expected(entry):
    """The estimate of all that the caller waits for, in seconds."""
    return entry.estimated_seconds + entry.transport_seconds


class Call:
    """A call that may be made on any device, any number of times."""

    def __init__(self, name, arguments, options, way):
        self.function = catalogue()[name]
        self.arguments, self.options = arguments, options
        self.con = None
        if way == "sql":
            self.con = spatialq.connect()
            self.query = self._put()

    def close(self):
        if self.con is not None:
            self.con.close()

    def __call__(self, device):
        """Run it; give its entry of the log."""
        if self.con is not None:
            self.con.execute(self.query.format(device=device)).fetchall()
            return log.entries()[-1]
        name, options = self.function.name, {"device": device, **self.options}
        match self.function.inputs:
            case GridInput():
                grid = self.arguments["grid"]
                spatialq.run_grid(name, grid.z, dx=grid.dx, dy=grid.dy, **options)
            case ElementsInput():
                spatialq.run_elements(name, **self.arguments, **options)
            case _:
                spatialq.run(name, **self.arguments, **options)
        return log.entries()[-1]

    def planned(self):
        """Plan it without a wish for a device, by the transport that SQL takes on this machine."""
        transport: rates.Transport = "arrays"
        if self.con is not None:
            transport = next(
                (e.transport for e in reversed(log.entries()) if e.transport != "arrays"), "lists"
            )
        size = size_of(self.function.inputs, self.arguments)
        chosen = self.function.choose(self.options)
        return plan_call([self.function], size, chosen, "auto", transport)

    def _put(self):
        """Make the tables, and write the query: it reads the first column of the result."""
        name = self.function.name
        tables = []
        match self.function.inputs:
            case GridInput():
                grid = self.arguments["grid"]
                rows, columns = grid.z.shape
                y, x = np.divmod(np.arange(rows * columns), columns)
                self._table("cells", x=x * grid.dx, y=y * grid.dy, z=grid.z.ravel())
                tables.append("cells")
            case ElementsInput():
                self._elements(self.arguments["a"])
                tables += ["elements"] * (1 + (self.arguments["b"] is not None))
            case inputs:
                given = {k: v for k, v in self.arguments.items() if k != inputs.other}
                self._table("points", **{k: v for k, v in given.items() if v is not None})
                tables.append("points")
                if isinstance(inputs, PointsAndElementsInput):
                    self._elements(self.arguments["elements"])
                    tables.append("elements")
                if isinstance(inputs, PointsAndTableInput):
                    rows = enumerate(self.arguments[inputs.other])
                    polygon_id, wkb = zip(*rows, strict=True)
                    self._table("wkb", polygon_id=polygon_id, wkb=wkb)
                    self.con.execute(
                        "CREATE TABLE plots AS "
                        "SELECT polygon_id, ST_GeomFromWKB(wkb) AS geometry FROM wkb"
                    )
                    tables.append("plots")
        options = "".join(f", {key} := {value!r}" for key, value in self.options.items())
        given = ", ".join(f"'{table}'" for table in tables)
        column = next(iter(self.function.output.columns))
        return (
            f"SELECT count({column}) FROM {MACROS.get(name, name)}({given}{options}, "
            "device := '{device}')"
        )

    def _table(self, name, **columns):
        self.con.register("incoming", pa.table(columns))
        self.con.execute(f"CREATE TABLE {name} AS FROM incoming")
        self.con.unregister("incoming")

    def _elements(self, meshes):
        vertices = pa.LargeListArray.from_arrays(
            pa.array(3 * meshes.vertex_starts), pa.array(meshes.vertices.ravel())
        ).cast(MESH.field("vertices").type)
        faces = pa.LargeListArray.from_arrays(
            pa.array(3 * meshes.face_starts), pa.array(meshes.faces.ravel())
        ).cast(MESH.field("faces").type)
        mesh = pa.StructArray.from_arrays([vertices, faces], fields=list(MESH))
        count = len(meshes)
        self._table(
            "elements",
            global_id=pa.array([f"e{k}" for k in range(count)]),
            ifc_class=pa.array(["IfcWall"] * count),
            mesh=mesh,
        )
