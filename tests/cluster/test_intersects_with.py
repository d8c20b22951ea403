"""Clashes of building models as a job: the rows of one call on all models."""

import json
import re
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from random import Random

import ifcopenshell.api.georeference
import pytest

from spatialq import cluster
from spatialq.cluster.methods import clash_tasks
from spatialq.errors import CrsError, FileError, FileWarning, JobError
from spatialq.workflows.clash import find_clashes
from tests.cluster import models, surveys
from tests.command_line import rows as command_rows
from tests.command_line import spatialq_command
from tests.conftest import made_once, real_file
from tests.io.ifc_models import Builder

FUNCTION = "intersects_with"
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
pytestmark = [
    pytest.mark.usefixtures("kept_models"),
    pytest.mark.filterwarnings("ignore::spatialq.errors.FileWarning"),
]


@pytest.fixture(scope="session")
def row(tmp_path_factory):
    """Twenty models: nineteen houses, each across the next, and two pipes."""
    return made_once(tmp_path_factory, "row_of_models", models.make)


@pytest.fixture(scope="session")
def expected(row):
    return models.in_one_piece([f"{row}/*.ifc"])


def beams(folder, name, low, *, place=None, size=(1.0, 0.1, 0.1)):
    """Write a model of one beam."""
    builder = Builder()
    builder.add("IfcBeam", f"beam of {name}", [builder.box(low, size)])
    if place is not None:
        ifcopenshell.api.georeference.add_georeferencing(builder.model)
        ifcopenshell.api.georeference.edit_georeferencing(
            builder.model,
            projected_crs={"Name": "EPSG:25832"},
            coordinate_operation={"Eastings": place, "Northings": 5.0, "OrthogonalHeight": 0.0},
        )
    return builder.write(folder / f"{name}.ifc")


CASES = {
    "as it is": {},
    "near": {"closer_than": 0.05},
    "far": {"closer_than": 1.5},
    "touching": {"closer_than": 0.0},
    "unrelated": {"exclude": "default"},
    "unrelated and near": {"exclude": "default", "closer_than": 0.1},
    "tolerance": {"tolerance": 0.05},
    "no tolerance": {"tolerance": 0.0},
    "pairmesh": {"method": "pairmesh"},
    "all pairs": {"broad_phase": "none"},
    "one side": {"a": "IfcWall"},
    "two sides": {"a": "IfcFlowSegment", "b": "IfcWall + IfcSlab"},
    "sides that overlap": {"a": "IfcWall + IfcSlab", "b": "IfcSlab + IfcRoof"},
    "spaces alone": {"a": "IfcSpace"},
    "spaces and others": {"a": "IfcSpace + IfcWall", "b": "IfcFlowSegment"},
    "of all models": {"a": "volume > (SELECT avg(volume) FROM elements)"},
    "of other tables": {
        "a": "(file_name, global_id) IN (SELECT (file_name, child) FROM relations)",
        "b": "xmin < 30",
    },
    "nothing": {"a": "ifc_class = 'IfcChimney'"},
    "exact meshes": {"geometry": "exact", "a": "IfcWall"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_parts_have_the_rows_of_one_piece(at_once, row, tmp_path, name):
    options = CASES[name]
    paths = [row / "pipes.ifc", *(row / f"house_{k:02}.ifc" for k in range(4))]
    result = cluster.run(FUNCTION, paths, tmp_path / "out", cell_elements=30, **options)
    found = models.of_job(tmp_path / "out")
    assert found == models.in_one_piece(paths, **options)
    assert result["rows"] == len(found)
    if name not in ("nothing", "spaces alone"):
        assert len(found) > 5
    if name == "as it is":
        assert result["parts"] > 3


@pytest.mark.slow
@needs_ray
def test_ray_gives_the_same(row, tmp_path, expected):
    """In fewer cells; `test_the_command_writes_the_same` has the other executor."""
    result = cluster.run(
        FUNCTION, f"{row}/*.ifc", tmp_path / "out", executor="ray", workers=2, cell_elements=100
    )
    assert models.of_job(tmp_path / "out") == expected
    assert result["parts"] > 5
    assert not (tmp_path / "out" / "stages").exists()


@pytest.mark.slow
def test_the_command_writes_the_same(row, tmp_path, expected):
    (said,) = command_rows(
        "clash", row / "*.ifc", "-o", tmp_path / "out", "--executor", "local", "--workers", 1
    )
    assert said["rows"] == len(expected)
    assert models.of_job(tmp_path / "out") == expected
    assert {each["function"] for each in command_rows("jobs", tmp_path)} == {FUNCTION}
    result = spatialq_command(
        "clash", row / "*.ifc", "-o", tmp_path / "x", "--resume", "--limit", 3
    )
    assert result.stderr.startswith("error: clash: --limit is no option of a job")
    result = spatialq_command("clash", row / "*.ifc", "--workers", 2)
    assert result.stderr.startswith("error: clash: --output must be one folder, that of the job")


REAL = {
    "two houses": ["AC20-FZK-Haus.ifc", "Duplex_A_20110907.ifc"],
    "floors of one house": [
        "Schependomlaan_XELLA-1e_verdieping.ifc",
        "Schependomlaan_XELLA-2e_verdieping.ifc",
        "Schependomlaan_XELLA-3e_verdieping.ifc",
        "Schependomlaan_XELLA-Begane_grond.ifc",
        "Schependomlaan_MULTICOM-balkons.ifc",
        "Schependomlaan_ROOT-staal.ifczip",
        "Schependomlaan_ROOT-kalkzandsteen.ifczip",
        "Schependomlaan_GEELEN-Breedplaat_V1.ifc",
        "Schependomlaan_GEELEN-Breedplaat_V2.ifc",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("options", [{}, {"closer_than": 0.02, "exclude": "default"}])
def test_real_models(at_once, tmp_path, name, options):
    paths = [real_file(f"data/ifc/{each}").resolve() for each in REAL[name]]
    result = cluster.run(FUNCTION, paths, tmp_path / "out", cell_elements=20, **options)
    found = models.of_job(tmp_path / "out")
    assert found == models.in_one_piece(paths, **options)
    assert len(found) > 100
    assert result["parts"] > 1


@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_what_is_done(row, tmp_path, expected):
    folder = tmp_path / "out"
    arguments = {
        "function": FUNCTION, "source": str(row), "folder": str(folder), "workers": 2,
        "cell_elements": 60,
    }  # fmt: skip
    command = [sys.executable, "-c", surveys.SCRIPT, json.dumps(arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for least in (5, 24):  # among the models, and among the parts
        until = time.monotonic() + 200
        while surveys.journal_lines(folder) < least and process.poll() is None:
            assert time.monotonic() < until, "the job does not go on"
            time.sleep(0.01)
        process.kill()
        process.communicate(timeout=60)
        (described,) = cluster.jobs(tmp_path)
        assert described["state"] == "unfinished"
        command[-1] = json.dumps(arguments | {"resume": True})
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert models.of_job(folder) == expected


def journal(folder):
    lines = (folder / "journal.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_a_job_that_is_done_is_left_as_it_is(at_once, tmp_path):
    one, other = (beams(tmp_path, name, low) for name, low in BEAMS.items())
    folder = tmp_path / "out"
    cluster.run(FUNCTION, [one, other], folder)
    before = journal(folder)
    result = cluster.run(FUNCTION, [one, other], folder, resume=True)
    assert (result["parts"], result["resumed"], result["rows"]) == (1, 1, 1)
    assert journal(folder) == before
    (folder / "parts" / "0000000.parquet").unlink()
    assert cluster.run(FUNCTION, [one, other], folder, resume=True)["rows"] == 1
    assert len(models.of_job(folder)) == 1


BEAMS = {"one": (0.0, 0.0, 0.0), "other": (0.5, 0.0, 0.0)}


@pytest.mark.slow
@pytest.mark.parametrize("is_done", [True, False])
def test_a_model_that_has_changed_is_noticed(at_once, tmp_path, is_done):
    one, other = (beams(tmp_path, name, low) for name, low in BEAMS.items())
    folder = tmp_path / "out"
    cluster.run(FUNCTION, [one, other], folder)
    if not is_done:
        (folder / "parts" / "0000000.parquet").unlink()
    beams(tmp_path, "other", (9.0, 0.0, 0.0))
    said = f"cluster.run: '{other}' has changed since the job in '{folder}' was begun"
    with pytest.raises(JobError, match=re.escape(said)):
        cluster.run(FUNCTION, [one, other], folder, resume=True)
    with pytest.raises(JobError, match="was begun with another closer_than, None, not 1"):
        cluster.run(FUNCTION, [one, other], folder, resume=True, closer_than=1)


@pytest.mark.slow
def test_models_at_different_places_are_refused(at_once, tmp_path):
    one = beams(tmp_path, "one", BEAMS["one"], place=400.0)
    other = beams(tmp_path, "other", BEAMS["other"], place=401.0)
    with pytest.raises(CrsError, match=r"clash: .* lie at different places on the map: EPSG:25832"):
        cluster.run(FUNCTION, [one, other], tmp_path / "out")
    third = beams(tmp_path, "third", BEAMS["other"])
    assert cluster.run(FUNCTION, [one, third], tmp_path / "third")["rows"] == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("always::spatialq.errors.FileWarning")
def test_warnings_are_those_of_one_piece(at_once, tmp_path):
    one = beams(tmp_path, "one", BEAMS["one"])
    other = beams(tmp_path, "other", (5e5, 0.0, 0.0))
    with pytest.warns(FileWarning) as told:
        cluster.run(FUNCTION, [one, other], tmp_path / "out", b="IfcWall")
    with pytest.warns(FileWarning) as expected:
        models.in_one_piece([one, other], b="IfcWall")
    assert [str(each.message) for each in told] == [str(each.message) for each in expected]
    assert len(told) == 2


@pytest.mark.slow
def test_a_model_that_cannot_be_read(at_once, tmp_path):
    one = beams(tmp_path, "one", BEAMS["one"])
    bad = tmp_path / "bad.ifc"
    shutil.copy(__file__, bad)
    with pytest.raises(FileError, match=f"clash: '{bad}': "):
        cluster.run(FUNCTION, [one, bad], tmp_path / "out")


@pytest.mark.slow
def test_properties_that_no_model_has_are_warned_of(at_once, tmp_path):
    one = beams(tmp_path, "one", BEAMS["one"])
    with pytest.warns(FileWarning) as told:
        cluster.run(FUNCTION, [one], tmp_path / "out", a='IfcBeam, "my set".Y=1')
    said = [str(each.message) for each in told]
    unknown = "clash: a: neither the model nor the standard has a property set named 'my set'; "
    assert any(each.startswith(unknown) for each in said)
    assert any(each.startswith("clash: no element of the models matches a: ") for each in said)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tile_size": 10.0}, "tile_size is for points, cell_elements is the size of cells"),
        ({"relations": True}, "relations is no option of a job, closer_than=0 gives pairs that"),
        ({"closer_than": -1}, "closer_than must be a number of metres >= 0, got -1"),
        ({"closer_than": "1"}, "closer_than must be a number of metres >= 0, got '1'"),
        ({"cell_elements": 0}, "cell_elements must be a whole number >= 1, got 0"),
        ({"exclude": 1}, "exclude must be 'none', 'default', or one or more of duplicates, "),
        ({"exclude": "none, systems"}, "with commas between, got 'none, systems'"),
        ({"geometry": "none"}, "geometry must be 'auto' or 'exact', got 'none'"),
        ({"a": "ifc_clas = 'IfcBeam'"}, "clash: a must be a condition over the columns"),
        (
            {"device": "tpu"},
            "device must be 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1', got 'tpu'",
        ),
        ({"part_format": "laz"}, "part_format must be one of parquet for intersects_with"),
    ],
)
def test_options_are_refused_before_anything_is_written(tmp_path, options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        cluster.run(FUNCTION, "a.ifc", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def misplaced(tmp_path):
    """Write three models of walls at irregular places, of which the last lies off by 8.4 m."""
    random = Random(1)
    walls = [
        (random.uniform(0, 30), random.uniform(0, 30), random.uniform(2, 5)) for _ in range(40)
    ]
    for k, shift in enumerate((0.0, 0.0, 8.4)):
        builder = Builder()
        for x, y, length in walls:
            for size in ((length, 0.2, 3.0 - 0.3 * k), (0.2, length, 3.0 - 0.3 * k)):
                low = (x + shift, y, 0.0)
                builder.add("IfcWall", "wall", [builder.box(low, size)])
        builder.write(tmp_path / f"walls_{k}.ifc")
    return f"{tmp_path}/*.ifc"


@pytest.mark.slow
@pytest.mark.filterwarnings("default::spatialq.errors.FileWarning")
def test_jobs_warn_of_misplaced_models_as_the_command_does(misplaced, tmp_path):
    with pytest.warns(FileWarning) as direct, find_clashes([misplaced]):
        pass
    said = [str(each.message) for each in direct]
    assert [each for each in said if "8.4 m east" in each]
    with pytest.warns(FileWarning) as of_job:
        cluster.run(FUNCTION, misplaced, tmp_path / "out", executor="serial")
    assert [str(each.message) for each in of_job] == said


@pytest.mark.slow
@pytest.mark.filterwarnings("default::spatialq.errors.FileWarning")
def test_models_too_large_to_be_compared_are_said(misplaced, tmp_path, monkeypatch):
    monkeypatch.setattr(clash_tasks, "COMPARED", 10**9)
    with pytest.warns(FileWarning, match="whether a model is misplaced was not looked at"):
        cluster.run(FUNCTION, misplaced, tmp_path / "out", executor="serial")
