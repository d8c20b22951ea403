"""A binary glTF 2.0 file (.glb): with one mesh, as tiles have it, or a node for each element.

Each attribute has a buffer view of its own whose stride is a multiple of 4 bytes, as viewers and
validators of tiles want it, and which EXT_meshopt_compression may compress. glTF is y-up and tiles
are z-up: `positions` turns the axes.
"""

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.runtime.arrays import Array, Floats, Uint32s

from .meshopt import encode_indices, encode_vertices

if TYPE_CHECKING:
    from numpy.typing import NDArray

GENERATOR = "spatialq"
COMPRESSION, QUANTISATION = "EXT_meshopt_compression", "KHR_mesh_quantization"
UNLIT = "KHR_materials_unlit"
COMPONENTS = {
    "int8": 5120, "uint8": 5121, "int16": 5122, "uint16": 5123, "uint32": 5125, "float32": 5126,
}  # fmt: skip
"""glTF's numbers of the types of components."""
SHAPES = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4"}
VERTEX_VIEW, INDEX_VIEW = 34962, 34963
POINTS, TRIANGLES = 0, 4
"""Modes of primitives."""
ALIGNMENT = 8
"""Of what is in the buffer; property tables need 8 bytes."""
JSON_CHUNK, BINARY_CHUNK = 0x4E4F534A, 0x004E4942


def y_up(positions: Floats) -> Floats:
    """Turn positions from z upwards to y upwards."""
    return np.stack([positions[:, 0], positions[:, 2], -positions[:, 1]], axis=1)


class Glb:
    """A glTF file while it is put together.

    Parameters
    ----------
    compress : bool
        Whether attributes and indices are compressed.
    """

    def __init__(self, *, compress: bool) -> None:
        self._compress = compress
        self._binary = bytearray()
        self._plain_bytes = 0
        self._views: list[dict[str, Any]] = []
        self._accessors: list[dict[str, Any]] = []
        self._materials: list[dict[str, Any]] = []
        self._primitives: list[dict[str, Any]] = []
        self._meshes: list[dict[str, Any]] = []
        self._nodes: list[dict[str, Any]] = []
        self._place: dict[str, Any] = {}
        self._said: dict[str, Any] = {}
        self._extensions: dict[str, Any] = {}
        self._used: set[str] = set()
        self._required: set[str] = set()

    def positions(self, steps: "NDArray[np.uint8 | np.uint16]", low: Floats, width: Floats) -> int:
        """Add quantised positions, which the node scales and moves.

        Parameters
        ----------
        steps : uint8[n, 3] or uint16[n, 3]
            Steps along x, z and y from `low`, y downwards: in the order of glTF's axes.
        low : float64[3]
            Position of step 0: lowest x, lowest z, highest y.
        width : float64[3]
            Of a step along x, z and y, in metres.

        Returns
        -------
        int
            Number of the accessor.
        """
        accessor = self.attribute(steps)
        self._accessors[accessor] |= {
            "min": steps.min(axis=0).tolist(),
            "max": steps.max(axis=0).tolist(),
        }
        self._place |= {
            "translation": [float(low[0]), float(low[1]), -float(low[2])],
            "scale": [float(each) for each in width],
        }
        self._require(QUANTISATION)
        return accessor

    def exact_positions(self, positions: Floats) -> int:
        """Add positions as float32.

        Parameters
        ----------
        positions : float64[n, 3]
            Metres along x, y and z of the frame, z upwards.

        Returns
        -------
        int
            Number of the accessor.
        """
        single = y_up(positions).astype(np.float32)
        accessor = self.attribute(single)
        self._accessors[accessor] |= {
            "min": single.min(axis=0).tolist(),
            "max": single.max(axis=0).tolist(),
        }
        return accessor

    def attribute(self, values: Array, *, normalized: bool = False) -> int:
        """Add values of vertices, each filled up to a multiple of 4 bytes.

        Parameters
        ----------
        values : array[n] or array[n, k] of a type of `COMPONENTS`
        normalized : bool
            Whether whole numbers mean fractions of the greatest.

        Returns
        -------
        int
            Number of the accessor.
        """
        rows = np.ascontiguousarray(values).reshape(len(values), -1)
        own = rows.dtype.itemsize * rows.shape[1]
        padded = np.zeros((len(rows), -(-own // 4) * 4), np.uint8)
        padded[:, :own] = rows.view(np.uint8).reshape(len(rows), own)
        view = self._view(padded.data, len(rows), padded.shape[1], VERTEX_VIEW, padded)
        return self._accessor(view, rows, normalized=normalized)

    def indices(self, indices: Uint32s) -> int:
        """Add indices of vertices; give the number of the accessor."""
        view = self._view(indices.data, indices.size, 4, INDEX_VIEW, indices)
        return self._accessor(view, indices.reshape(-1, 1), normalized=False)

    def table_column(self, values: bytes) -> int:
        """Add bytes of a property table; give the number of the buffer view."""
        self._views.append(self._put(values))
        return len(self._views) - 1

    def unlit_material(self) -> int:
        """Add a material that is drawn as it is, without light; give its number."""
        self._used.add(UNLIT)
        return self.material(extensions={UNLIT: {}})

    def material(self, **fields: Any) -> int:
        """Add a material; `fields` are those of glTF."""
        self._materials.append(fields)
        return len(self._materials) - 1

    def primitive(self, mode: int, attributes: dict[str, int], **fields: Any) -> None:
        """Add a primitive; `fields` are those of glTF, such as material, indices, extensions."""
        self._primitives.append({"attributes": attributes, "mode": mode, **fields})

    def node(self, **fields: Any) -> None:
        """Make a node of the primitives since the last one; `fields` are those of glTF."""
        self._nodes.append({"mesh": len(self._meshes), **self._place, **fields})
        self._meshes.append({"primitives": self._primitives})
        self._primitives, self._place = [], {}

    def say(self, **extras: Any) -> None:
        """Keep what is said of the whole file."""
        self._said |= extras

    def extension(self, name: str, content: dict[str, Any] | None = None) -> None:
        """Name an extension that is used, with its content for the whole file."""
        self._used.add(name)
        if content is not None:
            self._extensions[name] = content

    def to_bytes(self) -> bytes:
        """Give the file; primitives that are in no node are one."""
        if self._primitives:
            self.node()
        # what is empty must not be named
        buffers: list[dict[str, Any]] = []
        if self._binary:
            buffers.append({"byteLength": len(self._binary)})
        if self._plain_bytes:
            fallback = {COMPRESSION: {"fallback": True}}
            buffers.append({"byteLength": self._plain_bytes, "extensions": fallback})
        content = {
            "asset": {
                "version": "2.0",
                "generator": GENERATOR,
                **({"extras": self._said} if self._said else {}),
            },
            "extensionsUsed": sorted(self._used),
            "extensionsRequired": sorted(self._required),
            "extensions": self._extensions,
            "scene": 0,
            "scenes": [{"nodes": list(range(len(self._nodes)))} if self._nodes else {}],
            "nodes": self._nodes,
            "meshes": self._meshes,
            "materials": self._materials,
            "accessors": self._accessors,
            "bufferViews": self._views,
            "buffers": buffers,
        }
        content = {name: value for name, value in content.items() if value not in ([], {})}
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % ALIGNMENT)
        chunks: list[bytes | bytearray] = [struct.pack("<II", len(text), JSON_CHUNK), text]
        if self._binary:
            chunks += [struct.pack("<II", len(self._binary), BINARY_CHUNK), self._binary]
        total = 12 + sum(map(len, chunks))
        return b"".join([struct.pack("<4sII", b"glTF", 2, total), *chunks])

    def _require(self, name: str) -> None:
        self._used.add(name)
        self._required.add(name)

    def _put(self, values: Any) -> dict[str, Any]:
        """Append bytes to the buffer, aligned; say where they are."""
        place = {"buffer": 0, "byteOffset": len(self._binary), "byteLength": len(values)}
        self._binary += values
        self._binary += bytes(-len(self._binary) % ALIGNMENT)
        return place

    def _view(self, plain: Any, count: int, stride: int, target: int, values: Any) -> int:
        """Add a view of an attribute or of indices; give its number."""
        layout = {"byteStride": stride} if target == VERTEX_VIEW else {}
        if self._compress:
            is_attribute = target == VERTEX_VIEW
            packed = encode_vertices(values) if is_attribute else encode_indices(values)
            said = {
                **self._put(packed),
                "byteStride": stride,
                "count": count,
                "mode": "ATTRIBUTES" if is_attribute else "INDICES",
            }
            place = {"buffer": 1, "byteOffset": self._plain_bytes, "byteLength": count * stride}
            self._plain_bytes += count * stride
            extensions = {"extensions": {COMPRESSION: said}}
            self._require(COMPRESSION)
        else:
            place, extensions = self._put(plain.cast("B")), {}
        self._views.append({**place, **layout, "target": target, **extensions})
        return len(self._views) - 1

    def _accessor(self, view: int, rows: Array, *, normalized: bool) -> int:
        accessor = {
            "bufferView": view,
            "componentType": COMPONENTS[rows.dtype.name],
            "count": len(rows),
            "type": SHAPES[rows.shape[1]],
        }
        self._accessors.append(accessor | ({"normalized": True} if normalized else {}))
        return len(self._accessors) - 1
