"""Warnings of many tasks."""

import warnings

import pytest

from spatialq import cluster
from spatialq.cluster.serial_executor import SerialExecutor
from spatialq.cluster.warned import Warned
from spatialq.errors import CrsWarning, FileWarning
from tests.cluster import surveys


def told(count):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warned = Warned()
        for k in range(count):
            warned.tell("FileWarning", f"read_las: 'tile_{k}.laz': its header is damaged")
            warned.tell("CrsWarning", "heights were converted")
        warned.end()
        warned.end()
    return [(each.category, str(each.message)) for each in found]


@pytest.mark.parametrize("count", [1, 3, 4, 20_000])
def test_the_first_of_each_kind_are_shown_and_the_others_counted(count):
    found = told(count)
    of_files = [text for kind, text in found if kind is FileWarning]
    first = [f"read_las: 'tile_{k}.laz': its header is damaged" for k in range(min(count, 3))]
    more = f"and {count - 3} more of this kind: read_las: '...': its header is damaged"
    assert of_files == first + [more] * (count > 3)
    of_all = [text for kind, text in found if kind is CrsWarning]
    assert len(of_all) == min(count, 4)


def test_a_job_groups_its_warnings(at_once, tmp_path, monkeypatch):
    tiles = tmp_path / "tiles"
    tiles.mkdir()
    surveys.make(tiles, columns=3, rows=2)
    monkeypatch.setattr(SerialExecutor, "map", _warning(SerialExecutor.map), raising=True)
    with pytest.warns(FileWarning) as found:
        cluster.run("owm_ground", str(tiles), tmp_path / "out", **surveys.QUIET)
    texts = [str(each.message) for each in found if each.category is FileWarning]
    assert len(texts) == 4
    assert texts[-1] == "and 9 more of this kind: '...' is odd"  # two tasks for each file
    assert {each.filename for each in found if each.category is FileWarning} == {__file__}


def _warning(do):
    def with_warnings(self, tasks):
        for done in do(self, tasks):
            done.warnings.append(["FileWarning", f"'{done.name}' is odd"])
            yield done

    return with_warnings
