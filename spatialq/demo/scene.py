"""What stands in the village: houses, cars, garden walls, a bridge, trees."""

import math
from dataclasses import dataclass

import numpy as np

from spatialq.demo.houses import MODEL_HOUSE, Body, House, RoofPlane, box_body
from spatialq.demo.terrain import (
    SIZE,
    height,
    pond_radius,
    road_distance,
    stream_bed,
    stream_distance,
)
from spatialq.runtime.arrays import Floats

ROOFS = [(150, 75, 55), (128, 62, 50), (92, 60, 52), (82, 84, 90), (168, 96, 66)]
WALLS = [(214, 207, 192), (226, 218, 196), (188, 176, 160), (222, 205, 170)]
CARS = [(170, 24, 30), (30, 60, 140), (210, 212, 215), (38, 40, 44), (110, 120, 124)]
BRIDGE_AT = (95.0 + 22.0 * math.sin(205.0 / 48.0), 202.5)


@dataclass(frozen=True)
class Scene:
    """Everything above the terrain.

    Attributes
    ----------
    houses
        The first is the house of the building model.
    bodies
        Convex bodies of houses, cars, garden walls and the bridge.
    trees
        float64[n, 6]: u, v, height of the crown's middle, horizontal and vertical semi-axis, and a
        number in [0, 1) for the colour.
    """

    houses: list[House]
    bodies: list[Body]
    trees: Floats

    def roofs(self) -> list[RoofPlane]:
        """All roof faces of all houses."""
        return [plane for house in self.houses for plane in house.roof_planes()]


def build_scene(seed: int) -> Scene:
    """Place everything; the same seed gives the same scene."""
    rng = np.random.default_rng(seed)
    houses = _houses(rng)
    bodies = [body for house in houses for body in house.bodies()]
    bodies += _bridge() + _cars(rng, houses) + _garden_walls(rng, houses)
    return Scene(houses, bodies, _trees(rng, houses))


def _houses(rng: np.random.Generator) -> list[House]:
    houses = [MODEL_HOUSE]
    for _ in range(4000):
        if len(houses) == 24:
            break
        u, v = rng.uniform(16.0, SIZE - 16.0, 2)
        if not (10.0 < road_distance(u, v) < 60.0):
            continue
        if stream_distance(u, v) < 17.0 or pond_radius(u, v) < 1.7:
            continue
        if any(math.dist((u, v), house.centre) < 27.0 for house in houses):
            continue
        name = f"house {len(houses)}"
        kind = len(houses) % 6
        length, width = rng.uniform(9.0, 14.0), rng.uniform(7.0, 9.5)
        eaves, pitch = rng.uniform(4.0, 6.5), rng.uniform(28.0, 50.0)
        if kind == 3:  # a flat roof
            eaves, pitch = rng.uniform(3.2, 7.0), 0.0
        if kind == 5:  # a barn: long and low-pitched
            length, width, pitch = rng.uniform(18.0, 24.0), rng.uniform(10.0, 12.0), 22.0
        angle = rng.uniform(0.0, 180.0)
        roof = (140, 138, 132) if pitch == 0.0 else ROOFS[rng.integers(len(ROOFS))]
        wall = WALLS[rng.integers(len(WALLS))]
        turn = math.radians(angle)
        corner_u = u - length / 2 * math.cos(turn) + width / 2 * math.sin(turn)
        corner_v = v - length / 2 * math.sin(turn) - width / 2 * math.cos(turn)
        reach = (0.0, 0.0) if pitch == 0.0 else (0.6, 0.5)
        floor = height(u, v) + 0.3
        place = (corner_u, corner_v, floor, angle, length, width, eaves, pitch)
        houses.append(House(name, *place, 0.25, *reach, roof, wall))
    return houses


def _box(u: float, v: float, floor: float, angle: float, size: tuple[float, float, float]) -> House:
    """Frame of a plain box; the part below `floor` is as deep as the box is high."""
    length, width, top = size
    return House("box", u, v, floor, angle, length, width, top, 0.0, top)


def _bridge() -> list[Body]:
    u, v = BRIDGE_AT
    deck = _box(u - 9.0, v - 3.0, stream_bed(v) + 2.2, 2.0, (18.0, 6.0, 0.5))
    grey = (120, 118, 114)
    return [box_body(deck, 17, grey)]


def _cars(rng: np.random.Generator, houses: list[House]) -> list[Body]:
    bodies: list[Body] = []
    while len(bodies) < 16:
        u, v = rng.uniform(10.0, SIZE - 10.0, 2)
        if not (2.0 < road_distance(u, v) < 3.2) or stream_distance(u, v) < 15.0:
            continue
        if _near_house(u, v, houses, 3.0):
            continue
        angle = rng.uniform(0.0, 180.0)
        colour = CARS[rng.integers(len(CARS))]
        frame = _box(u, v, height(u, v), angle, (4.3, 1.8, 1.5))
        bodies.append(box_body(frame, 1, colour))
    return bodies


def _garden_walls(rng: np.random.Generator, houses: list[House]) -> list[Body]:
    bodies = []
    for house in houses[::2]:
        # along the back of the plot: parallel to the house, six metres behind it
        start = house.to_tile(np.array([[-2.0, house.width + 6.0, 0.0]]))[0]
        if stream_distance(start[0], start[1]) < 12.0 or road_distance(start[0], start[1]) < 6.0:
            continue
        size = (rng.uniform(8.0, 14.0), 0.35, rng.uniform(1.2, 1.9))
        frame = _box(start[0], start[1], height(start[0], start[1]), house.angle, size)
        bodies.append(box_body(frame, 1, (150, 140, 126)))
    return bodies


def _trees(rng: np.random.Generator, houses: list[House]) -> Floats:
    trees: list[tuple[float, ...]] = []
    while len(trees) < 330:
        u, v = rng.uniform(0.0, SIZE, 2)
        wood = u > 285.0 and v > 290.0
        by_stream = 7.0 < stream_distance(u, v) < 14.0
        if not (wood or by_stream) and rng.random() > 0.12:
            continue
        tall = rng.uniform(12.0, 20.0) if wood else rng.uniform(5.0, 13.0)
        radius = tall * rng.uniform(0.22, 0.34)
        if _near_house(u, v, houses, radius + 1.5) or road_distance(u, v) < 4.0 + radius / 2:
            continue
        if stream_distance(u, v) < 6.0 or pond_radius(u, v) < 1.25:
            continue
        stem = tall * rng.uniform(0.15, 0.3)
        half = (tall - stem) / 2
        trees.append((u, v, height(u, v) + stem + half, radius, half, rng.random()))
    return np.array(trees)


def _near_house(u: float, v: float, houses: list[House], distance: float) -> bool:
    for house in houses:
        x, y, _ = house.axes @ (np.array([u, v, 0.0]) - np.array([house.u, house.v, 0.0]))
        beside = max(-x, x - house.length, -y, y - house.width)
        if beside < distance:
            return True
    return False
