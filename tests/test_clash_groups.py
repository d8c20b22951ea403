"""Groups of clashes, compared with rules in plain Python and components by brute force."""

from collections import Counter

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq.workflows.clash import columns

from .command_line import rows, spatialq_command
from .conftest import made_once
from .examples import combinations
from .io.ifc_models import Builder

COLUMNS = (
    "a VARCHAR, b VARCHAR, penetration DOUBLE, x DOUBLE, y DOUBLE, z DOUBLE, a_storey VARCHAR, "
    "b_storey VARCHAR, volume DOUBLE, n INTEGER"
)


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        yield con


def made(con, seed, number=120):
    """Clashes of few elements and places, some of them without; their rows."""
    rng = np.random.default_rng(seed)
    given = []
    for n in range(number):
        a, b = rng.choice(20, 2, replace=False)
        place = [float(v) for v in rng.uniform(0, 9, 3)] if rng.random() < 0.9 else [None] * 3
        depth = None if rng.random() < 0.1 else float(rng.integers(1, 50)) / 100
        storeys = [None if rng.random() < 0.1 else f"S{rng.integers(3)}" for _ in "ab"]
        given.append((f"e{a}", f"e{b}", depth, *place, *storeys, float(rng.random()), n))
    con.execute(f"CREATE OR REPLACE TEMP TABLE clashes ({COLUMNS})")
    for row in given:
        con.execute("INSERT INTO clashes VALUES (" + ", ".join("?" * 10) + ")", row)
    return given


def partition(keys):
    """The groups as sets of rows, whatever they are called."""
    found = {}
    for n, key in enumerate(keys):
        found.setdefault(key, set()).add(n)
    return {frozenset(each) for each in found.values()}


def grouped(con, per, **options):
    more = "".join(f", {name} := {value}" for name, value in options.items())
    query = f"SELECT n, group_id FROM grouped_clashes('clashes', per := '{per}'{more}) ORDER BY n"
    found = con.sql(query).fetchall()
    assert [n for n, _ in found] == list(range(len(found)))
    return [group for _, group in found]


def components(places, distance):
    """Connected components, by looking at all pairs until nothing changes."""
    label = list(range(len(places)))
    near = [
        (i, j)
        for i in range(len(places))
        for j in range(i)
        if places[i] is not None
        and places[j] is not None
        and np.linalg.norm(np.subtract(places[i], places[j])) <= distance
    ]
    changes = True
    while changes:
        changes = False
        for i, j in near:
            if label[i] != label[j]:
                label[i] = label[j] = min(label[i], label[j])
                changes = True
    return label


@pytest.mark.parametrize(("seed", "distance"), combinations(range(3), [0.0, 0.7, 1.5, 20.0]))
def test_clusters_in_space_are_connected_components(con, seed, distance):
    given = made(con, seed)
    places = [None if row[3] is None else row[3:6] for row in given]
    found = grouped(con, "space", distance=distance)
    assert partition(found) == partition(components(places, distance))


@pytest.mark.parametrize("seed", range(3))
def test_by_element_is_by_the_one_with_more_clashes(con, seed):
    given = made(con, seed)
    degree = Counter(each for row in given for each in row[:2])
    hubs = [min(row[:2], key=lambda each: (-degree[each], each)) for row in given]
    assert partition(grouped(con, "element")) == partition(hubs)
    names = con.sql("SELECT group_name FROM grouped_clashes('clashes') ORDER BY n").fetchall()
    assert [name for (name,) in names] == hubs


def test_by_storey_is_by_both_of_them_in_any_order(con):
    given = made(con, 5)
    keys = [tuple(sorted({each for each in row[6:8] if each})) for row in given]
    assert partition(grouped(con, "storey")) == partition(keys)
    assert partition(grouped(con, "penetration")) == partition(row[2] for row in given)


@pytest.mark.parametrize("per", ["element", "space", "storey"])
def test_each_group_says_what_is_in_it(con, per):
    given = made(con, 7)
    groups = con.sql(f"FROM clash_groups('clashes', per := '{per}')")
    names, found = groups.columns, groups.fetchall()
    of_group = grouped(con, per)
    assert [row[0] for row in found] == list(range(1, max(of_group) + 1))
    worst = []
    for values in found:
        row = dict(zip(names, values, strict=True))
        own = [
            each for each, group in zip(given, of_group, strict=True) if group == row["group_id"]
        ]
        assert row["clashes"] == len(own)
        assert row["elements"] == len({each for clash in own for each in clash[:2]})
        assert row["volume"] == pytest.approx(sum(clash[8] for clash in own))
        depths = [clash[2] for clash in own if clash[2] is not None]
        assert row["penetration"] == max(depths, default=None)
        shown = [c for c in own if c[:2] == (row["a"], row["b"]) and c[3:6] == values[-3:]]
        assert row["penetration"] in [clash[2] for clash in shown]
        worst.append(row["penetration"] or -1.0)
    assert worst == sorted(worst, reverse=True)


def test_the_order_of_the_rows_does_not_matter(con):
    made(con, 8)
    con.execute("CREATE OR REPLACE TEMP VIEW turned AS FROM clashes ORDER BY hash(n)")
    for per in ("element", "space", "storey"):
        query = f"SELECT n, group_id, group_name FROM grouped_clashes('{{}}', per := '{per}')"
        one, other = (con.sql(query.format(of)).fetchall() for of in ("clashes", "turned"))
        assert sorted(one) == sorted(other)


def test_no_clashes_are_no_groups_and_a_wrong_column_is_named(con):
    made(con, 1, number=0)
    for per in ("element", "space", "storey"):
        assert con.sql(f"FROM clash_groups('clashes', per := '{per}')").fetchall() == []
    for number in (0, 1):
        made(con, 1, number=number)
        assert len(con.sql("FROM clash_groups('clashes', per := 'space')").fetchall()) == number
        for macro in ("clash_groups", "grouped_clashes"):
            right = f"{macro}: per must be 'element', 'space' or a column .* got 'mood'"
            with pytest.raises(duckdb.Error, match=right):
                con.sql(f"FROM {macro}('clashes', per := 'mood')").fetchall()


@pytest.mark.parametrize("per", ["", "*", "**", "$", "$.a", "$x", "/a", "[0]", "~", "a.b", 'a"b'])
def test_per_is_the_name_of_a_column_and_no_path(con, per):
    made(con, 1, number=9)
    with pytest.raises(duckdb.Error, match=r"per must be 'element', 'space' or a column"):
        con.sql(f"FROM clash_groups('clashes', per := '{per}')").fetchall()
    if per:
        name = '"' + per.replace('"', '""') + '"'
        con.execute(f"CREATE OR REPLACE TEMP VIEW named AS SELECT *, n % 2 AS {name} FROM clashes")
        found = con.sql(f"SELECT group_name FROM clash_groups('named', per := '{per}')").fetchall()
        assert sorted(found) == [("0",), ("1",)]


def test_columns_may_have_any_name_and_case_but_there_must_be_a_and_b(con):
    made(con, 2, number=30)
    taken = ", ".join(f"n AS {name}" for name in ("t", "j", "own", "way", "key"))
    con.execute(
        f"CREATE OR REPLACE TEMP VIEW odd AS SELECT * RENAME (a AS A, b AS B), {taken} FROM clashes"
    )
    groups = "SELECT * FROM clash_groups('{}')"
    assert con.sql(groups.format("odd")).fetchall() == con.sql(groups.format("clashes")).fetchall()
    con.execute("CREATE OR REPLACE TEMP VIEW one AS SELECT a, penetration FROM clashes")
    with pytest.raises(duckdb.Error, match="clash_groups: clashes must have a column b, got 'one'"):
        con.sql(groups.format("one")).fetchall()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from spatialq.demo.house import write_house

    return made_once(
        tmp_path_factory, "clash_groups", lambda folder: write_house(folder / "house.ifc")
    )


@pytest.mark.slow
def test_the_command_prints_groups_and_writes_a_topic_for_each(con, folder, tmp_path):
    house = folder / "house.ifc"
    groups = rows("clash", house, "--group", "element")["groups"]
    assert sorted(each["clashes"] for each in groups) == [
        1,
        1,
        3,
    ]  # three with the wall in the hall
    (wall,) = [each["group_name"] for each in groups if each["clashes"] == 3]
    for topics, number in (("groups", 3), ("clashes", 5)):
        path = tmp_path / f"{topics}.bcf"
        rows("clash", house, "--group", "element", "--topics", topics, "-o", path)
        selected = con.sql(
            f"SELECT topic, list(global_id) FROM read_bcf_components('{path}') "
            "WHERE role = 'selection' GROUP BY topic"
        ).fetchall()
        assert len(selected) == number
        assert sorted(len(ids) for _, ids in selected if wall in ids) == (
            [4] if topics == "groups" else [2, 2, 2]
        )
    table = tmp_path / "clashes.parquet"
    rows("clash", house, "--group", "space", "--group-distance", "100m", "-o", table)
    assert con.sql(f"SELECT DISTINCT group_id FROM '{table}'").fetchall() == [(1,)]


def test_what_is_no_column_is_refused_before_anything_is_read_or_kept(tmp_path):
    project = tmp_path / "p.duckdb"
    for arguments in (("--group", "mood"), ("--group", "rule"), ("--matrix", "penetration")):
        (option, given) = arguments
        result = spatialq_command("clash", "none.ifc", *arguments, "--project", project)
        assert result.returncode == 1
        assert f"clash: {option} must be " in result.stderr
        assert f"got '{given}'" in result.stderr
        assert not project.exists()


@pytest.mark.slow
def test_the_columns_of_clashes_are_known_before_they_are(con, folder, tmp_path):
    house, project, rules = folder / "house.ifc", tmp_path / "p.duckdb", tmp_path / "rules.yml"
    rules.write_text("- name: all")
    issues = tmp_path / "clashes.bcf"
    rows("clash", house, "-o", issues)

    def written(*arguments):
        target = tmp_path / "clashes.parquet"
        rows("clash", house, *arguments, "-o", target)
        return set(con.sql(f"FROM '{target}'").columns)

    assert written() == columns(con)
    assert written("--rules", rules) == columns(con, has_rules=True)
    assert written("--bcf-in", issues) == columns(con, has_issues=True)
    assert written("--project", project) == columns(con, has_project=True)
    with duckdb.connect(project) as kept:
        kept.execute("ALTER TABLE clashes ADD COLUMN trade VARCHAR")
    assert len(rows("clash", house, "--project", project, "--group", "trade")["groups"]) == 1


def test_clashes_without_a_storey_are_one_topic(tmp_path):
    builder = Builder()
    for k in range(3):
        builder.add("IfcBeam", f"beam {k}", [builder.box((0.0, 0.0, 0.2 * k), (2.0, 0.3, 0.3))])
    path = builder.write(tmp_path / "beams.ifc")
    for per in ("storey", "a_storey"):
        (group,) = rows("clash", path, "--group", per)["groups"]
        (written,) = rows("clash", path, "--group", per, "-o", tmp_path / "a.bcf")
        assert (group["clashes"], written["rows"]) == (2, 1)
