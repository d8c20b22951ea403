"""Plan of the model house: its walls, rooms and openings, and every clash that it has.

The parts are placed by hand in millimetres, from the outer south-west corner of the walls at the
height of the ground floor. `PAIRS` says what a clash test must find and what it must leave alone.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from spatialq.demo import terrain
from spatialq.demo.houses import MODEL_HOUSE
from spatialq.demo.ifc_writer import global_id

Kind = Literal["hard", "contains", "equal", "touch", "near", "hosted"]

LENGTH, WIDTH = 1000 * MODEL_HOUSE.length, 1000 * MODEL_HOUSE.width
OUTER, INNER = 300.0, 150.0  # wall thicknesses
STOREY, CLEAR = 2800.0, 2600.0  # floor to floor, and floor to ceiling


class Pair(NamedTuple):
    """Two parts and their relation.

    ``hard``: they share volume; ``contains``: `b` lies inside `a`, away from its surface;
    ``equal``: the same shape at the same place; ``touch``: they share surface but no volume;
    ``near``: `distance` metres apart; ``hosted``: an opening or its filling in `a`, no clash.
    """

    kind: Kind
    a: str
    b: str
    distance: float = 0.0


# the lists of all kinds but touch are complete, near ones up to 50 mm; touches are examples
PAIRS = (
    Pair("hard", "beam east", "heating pipe through beam"),
    Pair("hard", "wall hall", "supply duct through wall"),
    Pair("hard", "wall hall", "wall kitchen"),
    Pair("contains", "wall hall", "conduit"),
    Pair("equal", "column upper", "column upper again"),
    Pair("touch", "ground slab", "riser"),
    Pair("touch", "upper slab", "riser"),
    Pair("touch", "ground slab", "column"),
    Pair("touch", "beam west", "column"),
    Pair("touch", "upper slab", "beam west"),
    Pair("touch", "wall hall", "beam west"),
    Pair("touch", "ground slab", "stair flight"),
    Pair("touch", "ground slab", "footing south"),
    Pair("touch", "roof south", "roof north"),
    Pair("touch", "roof south", "gable west"),
    Pair("near", "wall south 0", "heating pipe along wall", 0.03),
    Pair("near", "wall living", "exhaust duct", 0.02),
)


class Gap(NamedTuple):
    """A rectangular hole in a wall and what fills it; along the wall and up, in millimetres."""

    name: str
    filling: Literal["IfcWindow", "IfcDoor", ""]
    start: float
    end: float
    sill: float
    head: float


class Wall(NamedTuple):
    """A wall: two corners on plan, height of its foot above the ground floor, gaps."""

    name: str
    low: tuple[float, float]
    high: tuple[float, float]
    foot: float
    gaps: tuple[Gap, ...] = ()

    @property
    def along_x(self) -> bool:
        """Whether the wall runs along x."""
        return self.high[0] - self.low[0] > self.high[1] - self.low[1]

    @property
    def thickness(self) -> float:
        """Shorter side on plan."""
        return min(self.high[0] - self.low[0], self.high[1] - self.low[1])

    @property
    def external(self) -> bool:
        """Whether the outside is on one side of the wall."""
        return self.thickness == OUTER


def _window(name: str, start: float, storey: int) -> Gap:
    foot = storey * STOREY
    return Gap(name, "IfcWindow", start, start + 1200.0, foot + 900.0, foot + 2200.0)


def _door(name: str, start: float, storey: int) -> Gap:
    foot = storey * STOREY
    return Gap(name, "IfcDoor", start, start + 900.0, foot, foot + 2100.0)


def _outer_walls(storey: int) -> list[Wall]:
    foot, n = storey * STOREY, storey
    south = [_window(f"window south-west {n}", 1500.0, n), _window(f"window south {n}", 7000.0, n)]
    if storey == 0:
        south.append(Gap("front door", "IfcDoor", 5500.0, 6500.0, 0.0, 2200.0))
    side = OUTER, WIDTH - OUTER
    return [
        Wall(f"wall south {n}", (0.0, 0.0), (LENGTH, OUTER), foot, tuple(south)),
        Wall(
            f"wall north {n}",
            (0.0, WIDTH - OUTER),
            (LENGTH, WIDTH),
            foot,
            (_window(f"window north {n}", 2000.0, n),),
        ),
        Wall(
            f"wall west {n}",
            (0.0, side[0]),
            (OUTER, side[1]),
            foot,
            (_window(f"window west {n}", 1500.0, n),),
        ),
        Wall(
            f"wall east {n}",
            (LENGTH - OUTER, side[0]),
            (LENGTH, side[1]),
            foot,
            (_window(f"window east {n}", 1500.0, n),),
        ),
    ]


_DUCT_GAP = Gap("duct opening", "", 980.0, 1320.0, 1980.0, 2220.0)
WALLS = (
    *_outer_walls(0),
    *_outer_walls(1),
    Wall("wall hall", (5000.0, 300.0), (5150.0, 7700.0), 0.0, (_door("hall door", 900, 0),)),
    Wall(
        "wall living",
        (300.0, 4000.0),
        (5000.0, 4150.0),
        0.0,
        (_door("living door", 3500, 0), _DUCT_GAP),
    ),
    # begins 50 mm inside the hall's wall
    Wall(
        "wall kitchen",
        (5100.0, 4500.0),
        (9700.0, 4650.0),
        0.0,
        (_door("kitchen door", 8000, 0),),
    ),
    Wall(
        "wall landing",
        (4900.0, 300.0),
        (5050.0, 7700.0),
        STOREY,
        (_door("bedroom door", 5000, 1),),
    ),
    Wall(
        "wall bath",
        (5050.0, 4000.0),
        (9700.0, 4150.0),
        STOREY,
        (_door("bath door", 6000, 1),),
    ),
)
SPACES = (
    ("living room", 0, (300.0, 300.0), (5000.0, 4000.0)),
    ("study", 0, (300.0, 4150.0), (5000.0, 7700.0)),
    ("hall", 0, (5150.0, 300.0), (9700.0, 4500.0)),
    ("kitchen", 0, (5150.0, 4650.0), (9700.0, 7700.0)),
    ("bedroom", 1, (300.0, 300.0), (4900.0, 7700.0)),
    ("bath", 1, (5050.0, 300.0), (9700.0, 4000.0)),
    ("landing", 1, (5050.0, 4150.0), (9700.0, 7700.0)),
)


def opening_name(gap: Gap) -> str:
    """Name the opening that a gap cuts."""
    return f"opening of {gap.name}" if gap.filling else gap.name


@dataclass(frozen=True)
class HouseTruth:
    """What is true about the model house.

    Attributes
    ----------
    pairs
        Pairs by the GlobalIds of their parts: see `Pair` and the note at `PAIRS`.
    crs
        Code of the map's reference system, height included.
    eastings, northings, height, angle
        Where the model's origin is on the map, in metres, and the direction of the model's x axis
        in degrees counter-clockwise from east.
    """

    pairs: tuple[Pair, ...]
    crs: str = terrain.CRS
    eastings: float = round(terrain.ORIGIN[0] + MODEL_HOUSE.u, 2)
    northings: float = round(terrain.ORIGIN[1] + MODEL_HOUSE.v, 2)
    height: float = round(MODEL_HOUSE.floor, 2)
    angle: float = MODEL_HOUSE.angle

    def of(self, kind: Kind) -> list[tuple[str, str]]:
        """Give the pairs of one kind as GlobalIds."""
        return [(pair.a, pair.b) for pair in self.pairs if pair.kind == kind]

    @staticmethod
    def global_id(name: str) -> str:
        """Give the GlobalId of a part by its name."""
        return global_id(name)


def house_truth() -> HouseTruth:
    """Give the truth about the file that `write_house` writes."""
    pairs = list(PAIRS)
    for wall in WALLS:
        for gap in wall.gaps:
            pairs.append(Pair("hosted", wall.name, opening_name(gap)))
            if gap.filling:
                pairs.append(Pair("hosted", wall.name, gap.name))
                pairs.append(Pair("hosted", opening_name(gap), gap.name))
    pairs.append(Pair("hosted", "upper slab", "stair opening"))
    return HouseTruth(
        tuple(pair._replace(a=global_id(pair.a), b=global_id(pair.b)) for pair in pairs)
    )
