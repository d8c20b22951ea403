"""Pictures of triangles and points without a screen: a depth buffer, flat shading, PNG."""

import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.export.camera import Camera
from spatialq.runtime.arrays import Array, Bools, Bytes, Floats, Int32s
from spatialq.runtime.compile_cache import njit

PAPER = (252, 252, 250)
NOTHING = -1
"""In `Picture.item`: the pixel shows no mesh and no point."""
LIGHT = (0.35, 0.5, -0.79)
"""Direction to the light: to the right, up and towards the viewer, about of length 1."""
AMBIENT = 0.6
"""Brightness of a face along the light; one across it has 1."""
MAX_PIXELS = 1 << 26
LEVEL = 4
"""Of zlib: what it gains beyond takes longer than the picture."""
STEEP = 1e9
"""An edge that is this near to the direction of a row does not say where in the row a face is."""


@dataclass(frozen=True)
class Picture:
    """What a camera sees.

    Parameters
    ----------
    pixels : uint8[height, width, 3]
    depth : float64[height, width]
        Distance along the view; infinity where there is nothing.
    item : int32[height, width]
        The number of the mesh that is seen; points count as one item after the last mesh.
    """

    pixels: Bytes
    depth: Floats
    item: Int32s

    @classmethod
    def blank(cls, tall: int, wide: int) -> "Picture":
        """Make one that shows nothing."""
        pixels = np.empty((tall, wide, 3), np.uint8)
        pixels[:] = np.resize(np.array(PAPER, np.uint8), (wide, 3))  # by rows, which is fast
        return cls(
            pixels,
            np.full((tall, wide), np.inf),
            np.full((tall, wide), NOTHING, np.int32),
        )

    @property
    def layers(self) -> tuple[Array, ...]:
        """What is kept of each pixel."""
        return self.pixels, self.depth, self.item

    def png(self) -> bytes:
        """Encode the picture; the same pixels give the same bytes."""
        tall, wide, channels = self.pixels.shape
        rows = self.pixels.reshape(tall, wide * channels)
        # each row as its difference from the one above, which is mostly zero: filter 2 of PNG
        filtered = np.full((tall, 1 + wide * channels), 2, np.uint8)
        filtered[0, 1:] = rows[0]
        np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
            for name, data in (
                (b"IHDR", struct.pack(">IIBBBBB", wide, tall, 8, 2, 0, 0, 0)),
                (b"IDAT", zlib.compress(filtered.tobytes(), LEVEL)),
                (b"IEND", b""),
            )
        )

    def draw(self, camera: Camera, meshes: Meshes, colours: Bytes, first: int = 0) -> None:
        """Draw meshes besides what is there, the first of them as item `first`."""
        self._faces(camera, meshes, colours, first, np.empty(0, np.bool_))

    def hiding(self, camera: Camera, meshes: Meshes) -> Bools:
        """Say which meshes, each for itself, would hide a part of what is there."""
        hides = np.zeros(len(meshes), np.bool_)
        self._faces(camera, meshes, np.empty((0, 3), np.uint8), 0, hides)
        return hides

    def _faces(
        self,
        camera: Camera,
        meshes: Meshes,
        colours: Bytes,
        first: int,
        hides: Bools,
    ) -> None:
        tall, wide = self.depth.shape
        places = _seen(meshes.vertices, camera, camera.axes())
        window = np.array([0, tall - 1, 0, wide - 1])
        if len(hides):
            shown = self.item != NOTHING
            sides = [np.flatnonzero(shown.any(axis=axis)) for axis in (1, 0)]
            if not len(sides[0]):
                return
            window = np.array([sides[0][0], sides[0][-1], sides[1][0], sides[1][-1]])
        _draw_faces(
            places, np.asarray(meshes.global_faces), np.asarray(meshes.face_mesh),
            np.asarray(colours, np.uint8), _lens(camera, wide, tall), window, first, hides,
            *self.layers,
        )  # fmt: skip


def render(
    camera: Camera,
    meshes: Meshes,
    colours: Bytes,
    points: Floats | None = None,
    point_colours: Bytes | None = None,
    *,
    point_size: float = 2.0,
) -> Picture:
    """Draw meshes and points.

    A pixel shows what the ray through its centre meets first, at most `camera.far` along the view
    and beyond `camera.near`; of what is met at one distance, what comes first in the input. Faces
    are seen from both sides.

    Parameters
    ----------
    camera : Camera
        The numbers of pixels are rounded.
    meshes : Meshes
    colours : uint8[k, 3]
        Of each mesh.
    points : float64[n, 3], optional
    point_colours : uint8[n, 3], optional
        Grey by default.
    point_size : float
        Side of the square of a point, pixels.

    Raises
    ------
    ValueError
        If the picture has no or too many pixels.
    """
    wide, tall = round(camera.width), round(camera.height)
    if not 0 < wide * tall <= MAX_PIXELS:
        message = f"render: a picture must have 1 to {MAX_PIXELS:,} pixels, got {wide:,} x {tall:,}"
        raise ValueError(message)
    picture = Picture.blank(tall, wide)
    picture.draw(camera, meshes, colours)
    if points is not None and len(points):
        if point_colours is None:
            point_colours = np.full((len(points), 3), 90, np.uint8)
        places = _seen(points, camera, camera.axes())
        lens = _lens(camera, wide, tall)
        _draw_points(places, point_colours, point_size, len(meshes), lens, *picture.layers)
    return picture


def _lens(camera: Camera, wide: int, tall: int) -> Floats:
    """Give what kernels need to know of a camera besides its place and axes."""
    return np.array([
        camera.scale, wide / 2, tall / 2, camera.is_parallel, camera.near,
        np.inf if camera.far is None else camera.far,
    ])  # fmt: skip


def _seen(places: Floats, camera: Camera, axes: Floats) -> Floats:
    """Give places to the right of the camera, above it, and along its view."""
    # not a product of matrices, whose sums depend on the library that computes them
    x, y, z = (np.asarray(places, np.float64)[:, k] - camera.eye[k] for k in range(3))
    return np.stack([x * row[0] + y * row[1] + z * row[2] for row in axes], axis=1)


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_faces(
    seen: Any, faces: Any, of_mesh: Any, colours: Any, lens: Any, window: Any, first: int,
    hides: Any, pixels: Any, depth: Any, item: Any,
) -> None:  # fmt: skip
    """Draw triangles by their homogeneous edge functions, which need no clipping.

    With corners p, q, r seen from the eye and the ray d through a pixel, d . (q x r) and its like
    are the weights of the corners in the point that the ray meets; all have one sign if it is
    inside. Those of an edge that two triangles share differ in sign alone, so no pixel between
    them is left out. A parallel view is the same with corners at a distance of 1.

    With `hides`, which is empty else, nothing is drawn; it says which meshes would hide an item.
    """
    asks = hides.size > 0
    above, below, before, behind = window[0], window[1], window[2], window[3]
    scale, middle, half, near, far = lens[0], lens[1], lens[2], lens[4], lens[5]
    is_parallel = lens[3] != 0
    p = np.empty((3, 3))
    away = np.empty(3)
    edge = np.empty((3, 3))
    weights = np.empty(3)
    shade = np.empty(3, np.uint8)
    across_view, met = np.empty(depth.shape[1]), np.empty(depth.shape[1])
    for column in range(across_view.size):
        across_view[column] = (column + 0.5 - middle) / scale
    for k in range(faces.shape[0]):
        mesh = of_mesh[k]
        if asks and hides[mesh]:
            continue
        nearest, farthest = np.inf, -np.inf
        for c in range(3):
            v = faces[k, c]
            away[c] = seen[v, 2]
            p[c, 0] = seen[v, 0]
            p[c, 1] = seen[v, 1]
            p[c, 2] = 1.0 if is_parallel else away[c]
            nearest = min(nearest, away[c])
            farthest = max(farthest, away[c])
        if farthest <= near or nearest > far or (not is_parallel and farthest <= 0):
            continue
        left, right, top, bottom = before, behind, above, below
        if is_parallel or nearest > 1e-9 * farthest:
            low_x, high_x, low_y, high_y = np.inf, -np.inf, np.inf, -np.inf
            for c in range(3):
                x = p[c, 0] / p[c, 2] * scale + middle
                y = half - p[c, 1] / p[c, 2] * scale
                low_x, high_x = min(low_x, x), max(high_x, x)
                low_y, high_y = min(low_y, y), max(high_y, y)
            # a pixel more on each side: rounding decides nothing here
            if (high_x < before - 1 or high_y < above - 1 or low_x > behind + 2
                    or low_y > below + 2):  # fmt: skip
                continue
            left, right = max(before, int(low_x) - 1), min(behind, int(high_x) + 1)
            top, bottom = max(above, int(low_y) - 1), min(below, int(high_y) + 1)
        for c in range(3):
            a, b = (c + 1) % 3, (c + 2) % 3
            edge[c, 0] = p[a, 1] * p[b, 2] - p[a, 2] * p[b, 1]
            edge[c, 1] = p[a, 2] * p[b, 0] - p[a, 0] * p[b, 2]
            edge[c, 2] = p[a, 0] * p[b, 1] - p[a, 1] * p[b, 0]
        # the normal, in the space of the camera
        ux, uy, uz = p[1, 0] - p[0, 0], p[1, 1] - p[0, 1], away[1] - away[0]
        vx, vy, vz = p[2, 0] - p[0, 0], p[2, 1] - p[0, 1], away[2] - away[0]
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        length = np.sqrt(nx * nx + ny * ny + nz * nz)
        if length == 0:
            continue
        across = abs(nx * LIGHT[0] + ny * LIGHT[1] + nz * LIGHT[2]) / length
        light = min(1.0, AMBIENT + (1 - AMBIENT) * across)
        if not asks:
            for c in range(3):
                shade[c] = np.uint8(colours[mesh, c] * light + 0.5)
        slope0, slope1, slope2 = edge[0, 0], edge[1, 0], edge[2, 0]
        away0, away1, away2 = away[0], away[1], away[2]
        for row in range(top, bottom + 1):
            if asks and hides[mesh]:
                break
            y = (half - (row + 0.5)) / scale
            # where in the row all weights are positive, and where all are negative
            low, high, low_other, high_other = left, right, left, right
            for c in range(3):
                slope, at_middle = edge[c, 0], y * edge[c, 1] + edge[c, 2]
                weights[c] = at_middle
                if abs(slope) * STEEP <= abs(y * edge[c, 1]) + abs(edge[c, 2]):
                    continue
                crosses = min(max(-at_middle / slope * scale + middle, -4.0), behind + 4.0)
                if slope > 0:
                    low, high_other = max(low, int(crosses) - 1), min(high_other, int(crosses) + 1)
                else:
                    high, low_other = min(high, int(crosses) + 1), max(low_other, int(crosses) - 1)
            if low > high:
                low, high = low_other, high_other
            elif low_other <= high_other:
                low, high = min(low, low_other), max(high, high_other)
            weight0, weight1, weight2 = weights[0], weights[1], weights[2]
            if low > high:
                continue
            # how far the rays go to the face, in a loop of its own for vector instructions
            some = across_view[low : high + 1]
            for n in range(some.size):
                x = some[n]
                e0 = x * slope0 + weight0
                e1 = x * slope1 + weight1
                e2 = x * slope2 + weight2
                is_in = ((e0 >= 0) & (e1 >= 0) & (e2 >= 0)) | ((e0 <= 0) & (e1 <= 0) & (e2 <= 0))
                weight = e0 + e1 + e2
                at = (e0 * away0 + e1 * away1 + e2 * away2) / weight
                is_met = is_in & (weight != 0) & (at > near) & (at <= far)
                met[n] = at if is_met else np.inf
            for n in range(some.size):
                column = low + n
                if met[n] < depth[row, column]:
                    if asks:
                        hides[mesh] = hides[mesh] or item[row, column] != NOTHING
                        continue
                    depth[row, column] = met[n]
                    item[row, column] = first + mesh
                    for c in range(3):
                        pixels[row, column, c] = shade[c]


@njit(cache=True, nogil=True)
def _draw_points(
    seen: Any, colours: Any, size: float, number: int, lens: Any, pixels: Any, depth: Any, item: Any
) -> None:
    """Draw points as squares that face the viewer."""
    tall, wide = depth.shape
    scale, middle, half, near, far = lens[0], lens[1], lens[2], lens[4], lens[5]
    is_parallel = lens[3] != 0
    for k in range(seen.shape[0]):
        at = seen[k, 2]
        if not (at > near and at <= far) or (not is_parallel and at <= 0):
            continue
        shrinks = 1.0 if is_parallel else at
        x = seen[k, 0] / shrinks * scale + middle
        y = half - seen[k, 1] / shrinks * scale
        if not (-size <= x <= wide + size and -size <= y <= tall + size):
            continue
        # pixels whose centres are in the square, and at least the one with the point in it
        left, right = int(np.ceil(x - size / 2 - 0.5)), int(np.ceil(x + size / 2 - 0.5)) - 1
        top, bottom = int(np.ceil(y - size / 2 - 0.5)), int(np.ceil(y + size / 2 - 0.5)) - 1
        if right < left:
            left = right = int(np.floor(x))
        if bottom < top:
            top = bottom = int(np.floor(y))
        for row in range(max(top, 0), min(bottom, tall - 1) + 1):
            for column in range(max(left, 0), min(right, wide - 1) + 1):
                if at < depth[row, column]:
                    depth[row, column] = at
                    item[row, column] = number
                    for c in range(3):
                        pixels[row, column, c] = colours[k, c]
