"""A server for the page's tests: the protocol over a small scene, with DuckDB and nothing of ours.

The scene is far from the origin, as UTM coordinates are. Points are tiled so that every node has
a part of them, in an order of its own.
"""

import json
import mimetypes
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import duckdb
import numpy as np

TOKEN = "token"
OFFSET = np.array([691_000.0, 5_335_000.0, 520.0])
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; img-src 'self' "
    "data: blob:; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TYPES = {"UTINYINT": "integer", "USMALLINT": "integer", "BIGINT": "integer", "INTEGER": "integer",
         "DOUBLE": "number", "BOOLEAN": "boolean"}  # fmt: skip
FLOAT, BYTE, SHORT, INT = 5126, 5121, 5123, 5125
KINDS = {"f4": FLOAT, "u1": BYTE, "u2": SHORT, "u4": INT}


def glb(mode, attributes, indices=None, strings=None):
    """Write a .glb of one primitive; `strings` is a property table for feature ids."""
    views, accessors, binary = [], [], b""

    def view(data):
        nonlocal binary
        binary += b"\0" * (-len(binary) % 8)
        views.append({"buffer": 0, "byteOffset": len(binary), "byteLength": len(data)})
        binary += data
        return len(views) - 1

    def accessor(name, values):
        kind = values.dtype.str[1:]
        size = 1 if values.ndim == 1 else values.shape[1]
        said = {
            "bufferView": view(np.ascontiguousarray(values).tobytes()),
            "componentType": KINDS[kind],
            "count": len(values),
            "type": "SCALAR" if size == 1 else f"VEC{size}",
        }
        if name == "POSITION":
            said |= {"min": values.min(0).tolist(), "max": values.max(0).tolist()}
        if name == "COLOR_0":
            said["normalized"] = True
        accessors.append(said)
        return len(accessors) - 1

    primitive = {"mode": mode, "attributes": {n: accessor(n, v) for n, v in attributes.items()}}
    if indices is not None:
        primitive["indices"] = accessor("", indices.astype(np.uint32))
    content = {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}]}
    content |= {"nodes": [{"mesh": 0}], "meshes": [{"primitives": [primitive]}]}
    if strings:
        count = len(next(iter(strings.values())))
        primitive["extensions"] = {
            "EXT_mesh_features": {
                "featureIds": [{"featureCount": count, "attribute": 0, "propertyTable": 0}]
            }
        }
        properties = {}
        for name, texts in strings.items():
            encoded = [text.encode() for text in texts]
            ends = np.cumsum([0, *map(len, encoded)]).astype(np.uint32)
            properties[name] = {
                "values": view(b"".join(encoded)),
                "stringOffsets": view(ends.tobytes()),
                "stringOffsetType": "UINT32",
            }
        table = {"class": "element", "count": count, "properties": properties}
        fields = {name: {"type": "STRING"} for name in strings}
        schema = {"id": "s", "classes": {"element": {"properties": fields}}}
        content["extensions"] = {
            "EXT_structural_metadata": {"schema": schema, "propertyTables": [table]}
        }
        content["extensionsUsed"] = ["EXT_mesh_features", "EXT_structural_metadata"]
    content |= {"bufferViews": views, "accessors": accessors}
    content["buffers"] = [{"byteLength": len(binary)}]
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    head = struct.pack("<4sIIII", b"glTF", 2, 28 + len(text) + len(binary), len(text), 0x4E4F534A)
    return head + text + struct.pack("<II", len(binary), 0x4E4942) + binary


def turned(local):
    """Give coordinates with y up, as glTF has them."""
    return np.stack([local[:, 0], local[:, 2], -local[:, 1]], axis=1).astype("f4")


def tile(low, high, uri, error, children=()):
    middle, half = (low + high) / 2, (high - low) / 2 + 1e-3
    return {
        "boundingVolume": {"box": [*middle, half[0], 0, 0, 0, half[1], 0, 0, 0, half[2]]},
        "geometricError": error,
        "refine": "ADD",
        "content": {"uri": uri},
        "children": list(children),
    }


def tileset(root):
    root["transform"] = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, *OFFSET, 1]
    return {"asset": {"version": "1.1"}, "geometricError": 2 * root["geometricError"], "root": root}


class Scene:
    """Points, boxes as elements, planes and a list of clashes, with the answers of the protocol.

    Parameters
    ----------
    points : dict of str to array
        `x`, `y`, `z` local, and other columns.
    elements : list of dict
        `global_id`, `ifc_class`, `name`, `storey`, `system`, `colour`, local `vertices`, `faces`.
    planes, clashes : list of dict
    """

    def __init__(self, points, elements, planes, clashes):
        self.files, self.nodes, self.queries, self.views = {}, {}, {}, []
        self.requests = []
        self.database = duckdb.connect()
        local = np.stack([points[axis] for axis in "xyz"], axis=1)
        columns = {"point_id": np.arange(len(local)) * 7 + 3}
        columns |= {axis: local[:, k] + OFFSET[k] for k, axis in enumerate("xyz")}
        columns |= {name: each for name, each in points.items() if name not in "xyz"}
        self.columns = columns
        self._add("points", columns)
        self._tile_points(local, columns)
        self._tile_elements(elements)
        names = ("global_id", "ifc_class", "name", "storey", "system")
        self._add("elements", {name: [each[name] for each in elements] for name in names})
        self.elements = [
            {name: each[name] for name in names}
            | {"model": 0, "box": self._box(np.asarray(each["vertices"]))}
            for each in elements
        ]
        self.planes = [
            {**each, "outline": (np.asarray(each["outline"]) + OFFSET).tolist()} for each in planes
        ]
        rows = {k: [p[k] for p in planes] for k in ("plane_id", "nx", "ny", "nz", "points")}
        self._add("planes", rows)
        # of a plane, every seventh point
        of_planes = [(each["plane_id"], columns["point_id"][::7]) for each in planes]
        keys = np.concatenate([np.full(len(ids), plane) for plane, ids in of_planes])
        ids = np.concatenate([ids for _, ids in of_planes])
        self._add("plane_points", {"point_id": ids, "plane_id": keys})
        self.clashes = [
            {**each, "box": self._box(np.asarray(each["box"]).reshape(2, 3)), "centre": None}
            for each in clashes
        ]
        low, high = local.min(0) + OFFSET, local.max(0) + OFFSET
        self.scene = {
            "title": "House and scan",
            "origin": OFFSET.tolist(),
            "crs": "EPSG:25832",
            "units": {"name": "m", "scale": [1.0, 1.0]},
            "clouds": [
                {
                    "id": 0, "name": "house.laz", "points": len(local),
                    "tileset": "clouds/0/tileset.json", "state": "ready", "progress": 1.0,
                    "message": None, "box": [*low, *high], "table": "points",
                    "columns": self._described("points"),
                }
            ],
            "models": [
                {
                    "id": 0, "name": "house.ifc", "tileset": "models/0/tileset.json",
                    "box": self._box(np.concatenate([e["vertices"] for e in elements])),
                    "table": "elements",
                }
            ],
            "elements": "elements.json",
            "planes": {"table": "planes", "rows": "planes.json"},
            "lists": [{"name": "clashes", "columns": ["name", "overlap"], "rows": self.clashes}],
            "tables": [
                {"name": name, "columns": self._described(name)}
                for name in ("points", "elements", "planes")
            ],
            "views": None, "limits": {"seconds": 10, "memory": "1GB", "rows": 1000},
        }  # fmt: skip

    def _add(self, name, columns):
        import pyarrow as pa

        given = pa.table(dict(columns))
        self.database.register("given", given)
        self.database.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        self.database.unregister("given")

    def _described(self, table):
        rows = self.database.execute(f"DESCRIBE {table}").fetchall()
        described = []
        for name, kind, *_ in rows:
            low = high = None
            if kind in TYPES:
                query = f'SELECT min("{name}")::DOUBLE, max("{name}")::DOUBLE FROM {table}'
                low, high = self.database.execute(query).fetchone()
            kind = TYPES.get(kind, "text")
            described.append({"name": name, "type": kind, "min": low, "max": high})
        return described

    @staticmethod
    def _box(vertices):
        return [*(vertices.min(0) + OFFSET), *(vertices.max(0) + OFFSET)]

    def _tile_points(self, local, columns):
        low, high = local.min(0), local.max(0)
        order = np.random.default_rng(2).permutation(len(local))
        first, rest = order[: len(order) // 8], order[len(order) // 8 :]
        side = (local[rest, 0] > (low[0] + high[0]) / 2) + 2 * (
            local[rest, 1] > (low[1] + high[1]) / 2
        )
        self.nodes = {"r": first} | {f"r{k}": rest[side == k] for k in range(4)}
        colours = np.stack([columns[c] for c in ("red", "green", "blue")], axis=1).astype(float)
        linear = np.round((colours / 255) ** 2.2 * 65535).astype("u2")
        padded = np.concatenate([linear, np.full((len(local), 1), 65535, "u2")], axis=1)
        children = []
        for name, rows in self.nodes.items():
            content = glb(0, {"POSITION": turned(local[rows]), "COLOR_0": padded[rows]})
            self.files[f"clouds/0/tiles/{name}.glb"] = content
            if name != "r":
                here = local[rows]
                children.append(tile(here.min(0), here.max(0), f"tiles/{name}.glb", 0))
        root = tile(low, high, "tiles/r.glb", float(high[0] - low[0]) / 16, children)
        self.files["clouds/0/tileset.json"] = json.dumps(tileset(root)).encode()

    def _tile_elements(self, elements):
        sizes = [len(each["vertices"]) for each in elements]
        starts = np.cumsum([0, *sizes])
        vertices = np.concatenate([each["vertices"] for each in elements])
        pairs = zip(elements, starts, strict=False)
        faces = np.concatenate([np.asarray(each["faces"]) + start for each, start in pairs])
        colours = np.repeat([[*each["colour"], 255] for each in elements], sizes, axis=0)
        linear = np.round((colours / 255) ** 2.2 * 65535).astype("u2")
        content = glb(
            4,
            {
                "POSITION": turned(vertices),
                "COLOR_0": linear,
                "_FEATURE_ID_0": np.repeat(np.arange(len(elements)), sizes).astype("f4"),
            },
            faces.ravel(),
            {"global_id": [each["global_id"] for each in elements]},
        )
        self.files["models/0/tiles/house.glb"] = content
        root = tile(vertices.min(0), vertices.max(0), "tiles/house.glb", 0)
        self.files["models/0/tileset.json"] = json.dumps(tileset(root)).encode()

    def query(self, body):
        start = time.perf_counter()
        result = self.database.cursor().execute(body["text"])
        names = [each[0] for each in result.description]
        kinds = [str(each[1]) for each in result.description]
        rows = result.fetchall()
        number = len(self.queries)
        select = {"points": {}, "elements": None, "planes": None}
        by_name = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
        values = [n for n, k in zip(names, kinds, strict=True)
                  if k in TYPES and not n.endswith("_id") and n not in "xyz"]  # fmt: skip
        colour = body["colour"] or (values[0] if values else None)
        if "point_id" in names:
            marks = np.zeros(len(self.columns["point_id"]), np.uint8)
            at = (np.array(by_name.get("point_id", ()), int) - 3) // 7
            said = {"kind": "mask", "count": len(set(at.tolist()))}
            marks[at] = 1
            if colour and rows:
                each = np.array(by_name[colour], float)
                low, high = float(each.min()), float(each.max())
                marks[at] = 1 + np.round((each - low) / max(high - low, 1e-9) * 254)
                legend = {"min": low, "max": high, "ramp": "viridis"}
                said |= {"kind": "bytes", "legend": legend, "column": colour}
            select["points"]["0"] = said
            self.queries[f"q{number}"] = said["kind"], marks
        else:
            self.queries[f"q{number}"] = None
        ids = [n for n in names if n.endswith("global_id")]
        if ids:
            chosen = [value for name in ids for value in by_name.get(name, ())]
            select["elements"] = {"global_ids": chosen, "values": None, "legend": None}
        if "plane_id" in names:
            select["planes"] = list(by_name.get("plane_id", ()))
        return {
            "id": f"q{number}",
            "columns": [{"name": n, "type": k} for n, k in zip(names, kinds, strict=True)],
            "rows": [list(row) for row in rows[:1000]],
            "count": len(rows),
            "truncated": len(rows) > 1000,
            "seconds": time.perf_counter() - start,
            "select": select if ids or "plane_id" in names or "point_id" in names else None,
        }

    def get(self, path):
        """Answer an address: bytes, or what becomes JSON; None where there is nothing."""
        parts = path.split("/")
        match parts:
            case ["scene.json"]:
                return self.scene
            case ["elements.json"]:
                return self.elements
            case ["planes.json"]:
                return self.planes
            case ["views"]:
                return self.views
            case ["query", number, "clouds", "0", node]:
                kind, marks = self.queries[number]
                here = marks[self.nodes[node]]
                return (
                    np.packbits(here > 0, bitorder="little") if kind == "mask" else here
                ).tobytes()
            case ["column", "0", place, node]:
                name = list(self.columns)[int(place)]
                return np.asarray(self.columns[name])[self.nodes[node]].astype("<f4").tobytes()
            case ["clouds", "0", "ids", node]:
                return self.columns["point_id"][self.nodes[node]].astype("<i8").tobytes()
            case ["row", "points", "0", number]:
                return self._row("points", "point_id", int(number), [])
            case ["row", "planes", number]:
                query = (
                    f"SELECT point_id, plane_id FROM plane_points WHERE plane_id = {int(number)}"
                )
                found = self.database.cursor().execute(query).fetchmany(200)
                points = [{"point_id": point, "plane_id": plane} for point, plane in found]
                relations = [self._relation("plane_points", points)]
                return self._row("planes", "plane_id", int(number), relations)
            case ["row", "elements", name]:
                clashes = [
                    {"name": c["name"], "b_global_id": next(e for e in c["elements"] if e != name)}
                    for c in self.clashes
                    if name in c["elements"]
                ]
                relations = [self._relation("clashes", clashes)]
                return self._row("elements", "global_id", name, relations)
        return self.files.get(path)

    @staticmethod
    def _relation(name, rows):
        return {
            "name": name, "table": f'memory.main."{name}"', "is_cut": len(rows) == 200,
            "rows": rows,
        }  # fmt: skip

    def _row(self, table, key, value, relations):
        result = self.database.cursor().execute(f"SELECT * FROM {table} WHERE {key} = ?", [value])
        names = [each[0] for each in result.description]
        return {"row": dict(zip(names, result.fetchone(), strict=True)), "relations": relations}


class Server:
    """Serves a scene and the page on this machine; `url` ends in a slash."""

    def __init__(self, scene, page):
        self.requests = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self, status, body, kind="application/json"):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Security-Policy", POLICY)
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(body)

            def path_of(self):
                path = unquote(urlsplit(self.path).path)
                server.requests.append(path)
                return path.removeprefix(f"/{TOKEN}/")

            def do_GET(self):
                path = self.path_of()
                file = Path(page) / (path or "index.html")
                if file.is_file():
                    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
                    return self.answer(200, file.read_bytes(), kind)
                found = scene.get(path)
                if found is None:
                    return self.answer(404, b'{"error": "There is nothing of this name."}')
                if isinstance(found, bytes):
                    return self.answer(200, found, "application/octet-stream")
                return self.answer(200, json.dumps(found, default=str).encode())

            def do_POST(self):
                path = self.path_of()
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if path == "views":
                    scene.views.append(body)
                    return self.answer(200, b"{}")
                try:
                    found = scene.query(body)
                except duckdb.Error as error:
                    return self.answer(400, json.dumps({"error": str(error)}).encode())
                return self.answer(200, json.dumps(found, default=str).encode())

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/{TOKEN}/"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
