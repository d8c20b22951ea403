"""Tiles in other programs: Khronos' validator of glTF, and three.js in headless Chromium.

They need Node.js with the packages of `tiles_browser` (`npm ci --ignore-scripts --legacy-peer-deps`
there), the latter also Chromium (`SPATIALQ_CHROMIUM` names one that is not on the path).
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import spatialq
from spatialq.export.tiles.options import TileOptions

from ..conftest import made_once
from .test_tiles_elements import cube, table
from .test_tiles_points import SMALL, write_scene
from .tiles_reading import check

pytestmark = pytest.mark.slow  # as a whole

SCRIPTS = Path(__file__).parent / "tiles_browser"
MODULES = SCRIPTS / "node_modules"
UNKNOWN = ("EXT_meshopt_compression", "EXT_structural_metadata", "EXT_mesh_features")
"""Extensions that the validator does not know; what only they refer to it takes for unused."""
SECONDS = 300


@pytest.fixture(scope="session")
def node():
    """Node.js with the packages."""
    found = shutil.which("node")
    if found is None or not MODULES.is_dir():
        pytest.skip(f"Node.js, or its packages in {SCRIPTS.name}, are not installed")
    return found


@pytest.fixture(scope="session")
def chromium(node):
    """Headless Chromium."""
    found = os.environ.get("SPATIALQ_CHROMIUM") or shutil.which("chromium")
    if found is None:
        pytest.skip("Chromium is not installed")
    return found


def write_all(folder):
    """The tilesets of all tests."""
    cloud = write_scene(folder / "a.laz")
    house = table(
        [cube(at=(0, 0, 0), side=4), cube(at=(5, 0, 0), side=2), cube(at=(0, 6, 0))],
        name=["red", "green glass", "grey"],
        colour=["#ff0000", "#00ff0080", None],
    )
    spatialq.write_lod(cloud, folder / "nested" / "tileset.json", **SMALL)
    for name, options in (
        ("implicit", TileOptions(implicit=True)),
        ("plain", TileOptions(compress=False, colour_bits=8)),
    ):
        spatialq.write_lod(cloud, folder / name / "tileset.json", tiles=options, **SMALL)
    for name, compress in (("house", True), ("plain-house", False)):
        spatialq.write_tiles(house, folder / name / "tileset.json", compress=compress)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return made_once(tmp_path_factory, "tiles-for-others", write_all)


def run(*arguments):
    command = list(map(str, arguments))
    result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_khronos_finds_nothing(node, folder):
    files = sorted(folder.rglob("*.glb"))
    found = run(node, SCRIPTS / "validate.js", *files)
    assert len(found) == len(files) > 20
    for path, messages in found.items():
        for message in messages:
            is_unknown = any(each in message["message"] for each in UNKNOWN)
            assert is_unknown or message["code"] == "UNUSED_OBJECT", (path, message)
            assert message["severity"] >= 2, (path, message)


def test_khronos_finds_a_fault(node, folder, tmp_path):
    """So that the test above means something."""
    (good, *_) = sorted((folder / "plain").rglob("*.glb"))
    bad = tmp_path / "bad.glb"
    bad.write_bytes(good.read_bytes().replace(b"5121", b"5123", 1))
    ((messages,),) = (run(node, SCRIPTS / "validate.js", bad).values(),)
    assert min(message["severity"] for message in messages) == 0


def shown(node, chromium, folder, *requests):
    bundle = folder / f"page-{os.getpid()}.js"
    esbuild = MODULES / ".bin" / "esbuild"
    options = ("--bundle", "--format=esm", "--log-level=error")
    subprocess.run([esbuild, SCRIPTS / "page.js", *options, f"--outfile={bundle}"], check=True)
    answers = run(node, SCRIPTS / "drive.js", chromium, folder, bundle, json.dumps(requests))
    for answer in answers:
        assert answer["errors"] == []
        assert answer["isStill"]
    return answers


def test_a_viewer_shows_points(node, chromium, folder):
    """The leaves are exactly the points of the file, a coarse view is the root alone."""
    names = ("nested", "implicit", "plain")
    near = shown(node, chromium, folder, *((f"/{name}/tileset.json", 1e-3) for name in names))
    far = shown(node, chromium, folder, *((f"/{name}/tileset.json", 1e6) for name in names))
    root = len(check(folder / "nested" / "tileset.json").leaves)
    assert root > 1
    for answer, coarse in zip(near, far, strict=True):
        assert answer["points"] == 4000
        assert 0 < coarse["points"] < 1000
        assert answer["covered"] > 300
        # the colours are random, so that their mean is that of half-bright light
        assert np.allclose(answer["mean"], 127, atol=12)


def test_a_viewer_shows_elements(node, chromium, folder):
    for name in ("house", "plain-house"):
        ((answer,),) = (shown(node, chromium, folder, (f"/{name}/tileset.json", 1)),)
        assert answer["triangles"] == 36
        assert sorted(each["name"] for each in answer["tables"]) == ["green glass", "grey", "red"]
        assert answer["covered"] > 1000
        red, green, blue = answer["mean"]
        assert red > green > blue
