"""Federations of real trades: one that was moved is found to a millimetre, none that fits is said.

The constants of the search were chosen on trades of Schependomlaan; Duplex, divided into trades by
class, was not looked at before.
"""

import warnings

import duckdb
import numpy as np
import pytest
from spatialq.udfs.model_alignment.search import _peaks

import spatialq
from spatialq.errors import FileWarning
from spatialq.workflows.clash import find_clashes
from tests.conftest import real_file

from .moving import moved

pytestmark = pytest.mark.slow

HOME = "Schependomlaan_"
TRADES = {
    "bernts": f"{HOME}BERNTS-Staalconstructie.ifczip",
    "geelen_1": f"{HOME}GEELEN-Breedplaat_V1.ifc",
    "geelen_2": f"{HOME}GEELEN-Breedplaat_V2.ifc",
    "geelen_3": f"{HOME}GEELEN-Breedplaat_V3.ifc",
    "balconies": f"{HOME}MULTICOM-balkons.ifc",
    "floors": f"{HOME}ROOT-breedplaatvloeren.ifczip",
    "frames": f"{HOME}ROOT-houten_kozijnen.ifczip",
    "walls": f"{HOME}ROOT-kalkzandsteen.ifczip",
    "steel": f"{HOME}ROOT-staal.ifczip",
    "structure": f"{HOME}V_L_Constructief.ifczip",
    "xella_0": f"{HOME}XELLA-Begane_grond.ifc",
    "xella_1": f"{HOME}XELLA-1e_verdieping.ifc",
    "xella_2": f"{HOME}XELLA-2e_verdieping.ifc",
    "xella_3": f"{HOME}XELLA-3e_verdieping.ifc",
}
XELLA = ("xella_0", "xella_1", "xella_2", "xella_3")
GEELEN = ("geelen_1", "geelen_2", "geelen_3")
MISPLACED = [
    ("bernts", ("steel", "floors"), (3.25, -7.4, 0.0), 0),
    ("steel", ("bernts", "floors", *GEELEN), (-8.4, 10.5, 0.0), 0),
    ("walls", (*XELLA, "floors"), (0.5, 0.0, 0.0), 0),
    ("xella_1", ("walls", "xella_0", "xella_2", "xella_3"), (-12.345, 6.789, 0.35), 90),
    ("xella_2", ("walls", "frames"), (0.0, -0.025, 0.0), 0),
    ("floors", (*GEELEN, "bernts", "steel", "walls"), (11.0, 3.0, -1.2), 180),
    ("geelen_1", ("floors", "geelen_2", "geelen_3"), (-4.321, 2.5, 0.0), 0),
    ("structure", ("bernts", "steel", "floors"), (100.0, 50.0, 2.0), 270),
    ("xella_0", ("walls", "xella_1", "xella_2"), (6.0, 6.0, 0.0), 0),
    ("walls", (*XELLA,), (0.0, 0.0, 0.6), 0),
]
"""The trade that is moved, the others, by how much, and by how many degrees it is turned before."""
FITTING = [
    ("bernts", "steel", "floors"),
    (*XELLA,),
    (*GEELEN,),
    ("walls", *XELLA),
    ("floors", *GEELEN),
    ("walls", "floors", "steel", "frames"),
    ("xella_1", "geelen_2"),
    ("frames", "balconies", "xella_2", "geelen_3"),
    ("balconies", "bernts"),
    ("walls", "floors", "xella_1", "geelen_1", "frames"),
]
SAID_IN_FILE = (8.4359, 10.4762, 0.0)
"""What brings V_L_Constructief, as it was published, to where the others are."""


def read(con, table, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spatialq.read_ifc(con, path, name=table)


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        for name, file in TRADES.items():
            read(con, name, real_file(f"data/ifc/{file}"))
        yield con


def compared(con, tables):
    rows = " UNION ALL BY NAME ".join(f"FROM {table}" for table in tables)
    con.execute(f"CREATE OR REPLACE TEMP VIEW federation AS {rows}")
    result = con.sql("FROM model_alignment('federation')")
    return [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]


def name_of(con, table):
    ((name,),) = con.sql(f"SELECT DISTINCT file_name FROM {table}").fetchall()
    return name


@pytest.mark.parametrize("case", range(len(MISPLACED)))
def test_a_trade_that_was_moved_is_found(con, tmp_path, case):
    trade, others, shift, degrees = MISPLACED[case]
    source, start = real_file(f"data/ifc/{TRADES[trade]}"), shift
    if trade == "structure":  # which is not where the others are
        source = moved(source, tmp_path / "right.ifc", SAID_IN_FILE)
    path = moved(source, tmp_path / "moved.ifc", start, degrees)
    read(con, f"moved_{case}", path)
    rows = [
        row for row in compared(con, [*others, f"moved_{case}"]) if row["verdict"] == "misplaced"
    ]
    assert rows
    gained = max(row["agreeing"] - row["agreeing_unmoved"] for row in rows)
    assert gained > 20 or shift[:2] == (0.0, 0.0)
    for row in rows:
        assert str(path) in (row["a_file"], row["b_file"])
        assert row["sentence"].startswith("moved ")
        # what moves the others to where the moved one is, if it is the first
        if row["a_file"] == str(path):
            expected, turn = shift, degrees
        else:
            expected, turn = back(shift, degrees)
        assert (row["dx"], row["dy"], row["dz"]) == pytest.approx(expected, abs=1e-3)
        assert abs((row["turn"] - turn + 180) % 360 - 180) < 1e-3


@pytest.mark.parametrize("before", ["!", "~"])
def test_a_moved_trade_is_found_wherever_its_name_sorts(con, tmp_path, before):
    trade, others, shift, degrees = MISPLACED[2]
    path = moved(real_file(f"data/ifc/{TRADES[trade]}"), tmp_path / "moved.ifc", shift, degrees)
    read(con, f"moved_{ord(before)}", path)
    con.execute(
        f"CREATE OR REPLACE TEMP VIEW named AS "
        f"SELECT * REPLACE ('{before}moved' AS file_name) FROM moved_{ord(before)}"
    )
    rows = [row for row in compared(con, [*others, "named"]) if row["verdict"] == "misplaced"]
    assert {f"{before}moved"} == {
        name for row in rows for name in (row["a_file"], row["b_file"]) if "moved" in name
    }
    assert len(rows) == len(XELLA)


def back(shift, degrees):
    """Give the motion that undoes another one, of quarters of a turn."""
    x, y, z = shift
    for _ in range(degrees // 90):
        x, y = y, -x
    return (-x, -y, -z), -degrees


@pytest.mark.parametrize("case", range(len(FITTING)))
def test_trades_that_fit_are_not_said_to_be_misplaced(con, case):
    rows = compared(con, FITTING[case])
    assert len(rows) == len(FITTING[case]) * (len(FITTING[case]) - 1) / 2
    assert [row for row in rows if row["verdict"] == "misplaced"] == []


def test_the_model_of_the_structure_lies_beside_the_others(con):
    rows = [row for row in compared(con, TRADES) if row["verdict"] == "misplaced"]
    assert {row["sentence"] for row in rows} == {
        f"{HOME}V_L_Constructief lies 8.4 m west and 10.5 m south of the others"
    }
    name = name_of(con, "structure")
    for row in rows:
        sign = 1 if row["b_file"] == name else -1
        found = [sign * row[each] for each in ("dx", "dy", "dz")]
        assert found == pytest.approx(SAID_IN_FILE, abs=2e-3)


def test_clash_warns_before_it_looks_for_pairs():
    paths = [real_file(f"data/ifc/{TRADES[name]}") for name in ("steel", "structure")]
    sentence = f"clash: {HOME}V_L_Constructief lies 8.4 m west and 10.5 m south of {HOME}ROOT-staal"
    with pytest.warns(FileWarning, match=sentence), find_clashes(paths, a="IfcFooting") as con:
        assert con.sql("SELECT count(*) FROM clashes").fetchall() == [(0,)]


def test_meshes_that_are_none_are_refused(con):
    con.execute("""
        CREATE OR REPLACE TEMP VIEW broken AS SELECT 'a.ifc' AS file_name, 'IfcWall' AS ifc_class,
        {vertices: [0.0, 1.0], faces: [0, 0, 1]} AS mesh
    """)
    with pytest.raises(duckdb.Error, match="model_alignment: meshes must have finite vertices"):
        con.sql("FROM model_alignment('broken')").fetchall()


PARTS = {
    "walls": "ifc_class LIKE 'IfcWall%' OR ifc_class LIKE 'IfcCovering%'",
    "slabs": "regexp_matches(ifc_class, 'Ifc(Slab|Column|Beam|Roof|Footing|Stair)')",
}
PARTS["rest"] = f"NOT ({PARTS['walls']}) AND NOT ({PARTS['slabs']})"


@pytest.mark.parametrize(
    ("part", "shift", "degrees"),
    [
        (None, (0.0, 0.0, 0.0), 0),
        ("walls", (-5.485, 9.112, 0.0), 0),
        ("slabs", (4.241, -10.541, 0.0), 180),
        ("rest", (4.3, 8.882, 0.0), 0),
    ],
)
def test_trades_of_another_building(tmp_path, part, shift, degrees):
    source = real_file("data/ifc/Duplex_A_20110907.ifc")
    with spatialq.connect() as con:
        read(con, "here", source)
        if part is not None:
            read(con, "there", moved(source, tmp_path / "moved.ifc", shift, degrees))
        for name, condition in PARTS.items():
            table = "there" if name == part else "here"
            con.execute(
                f"CREATE TEMP VIEW {name} AS SELECT * REPLACE ('{name}' AS file_name) FROM {table} "
                f"WHERE {condition}"
            )
        rows = compared(con, PARTS)
    assert len(rows) == 3
    if part is None:
        assert {row["verdict"] for row in rows} == {"fits"}
        return
    for row in rows:
        assert row["verdict"] == ("misplaced" if part in (row["a_file"], row["b_file"]) else "fits")
        if row["verdict"] == "misplaced":
            expected, turn = (shift, degrees) if row["a_file"] == part else back(shift, degrees)
            assert (row["dx"], row["dy"], row["dz"]) == pytest.approx(expected, abs=1e-3)
            assert abs((row["turn"] - turn + 180) % 360 - 180) < 1e-3
            assert row["sentence"].startswith(f"{part} ")


WALLS = "ifc_class LIKE 'IfcWall%'"
OPENINGS = "ifc_class IN ('IfcDoor', 'IfcWindow')"
FINISH = "regexp_matches(ifc_class, 'Ifc(Covering|Stair|Railing)')"


def trades(con, other, moved_one, conditions):
    """Compare two trades of a building by class, of which the first is of a moved copy of it."""
    read(con, "one", moved_one)
    read(con, "other", other)
    for name, condition in zip(("one", "other"), conditions, strict=True):
        con.execute(
            f"CREATE TEMP VIEW part_{name} AS SELECT * REPLACE ('{name}' AS file_name) "
            f"FROM {name} WHERE {condition}"
        )
    return compared(con, ["part_one", "part_other"])


@pytest.mark.parametrize(
    ("shift", "degrees"),
    [
        ((-0.3, 0.0, 0.0), 0),
        ((0.0, 0.05, 0.0), 0),
        ((-0.05, 0.0, 0.0), 0),  # three planes along x are shared by chance
        ((0.0, 0.0, -0.05), 0),
        ((6.66, -9.158, 0.0), 90),
        ((1.2, 0.3, 0.0), 5),
    ],
)
def test_walls_that_share_planes_with_doors_by_chance_are_found(tmp_path, shift, degrees):
    source = real_file("data/ifc/AC20-FZK-Haus.ifc")
    path = moved(source, tmp_path / "moved.ifc", shift, degrees)
    with spatialq.connect() as con:
        (row,) = trades(con, source, path, (WALLS, OPENINGS))
    assert row["verdict"] == "misplaced"
    assert (row["dx"], row["dy"], row["dz"]) == pytest.approx(shift, abs=1e-3)
    assert row["turn"] == pytest.approx(degrees, abs=1e-3)


def test_a_height_that_few_floors_speak_for_is_not_said():
    source = real_file("data/ifc/Office_A_20110811.ifc")
    with spatialq.connect() as con:
        (row,) = trades(con, source, source, (FINISH, OPENINGS))
    assert row["verdict"] == "unknown"


def test_the_shift_with_most_votes_is_in_the_middle_of_its_bins():
    ((found, votes),) = _peaks(np.full(5, 0.0104), 1)
    assert (round(found, 6), votes) == (0.01, 5)
