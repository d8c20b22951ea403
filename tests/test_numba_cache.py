"""Kernels run where Numba finds no folder for its cache."""

import subprocess
import sys

import pytest

NO_FOLDER = """
from numba.core import caching
def refuse(self):
    raise OSError("read-only")
for locator in (caching.InTreeCacheLocator, caching.UserWideCacheLocator):
    locator.ensure_cache_path = refuse
"""
RUN = """
import numpy as np
from spatialq.udf import catalog
from spatialq.udfs.owm_ground import Options
x = np.arange(10.0)
kernel = catalog()["owm_ground"].kernel("cpu")
print(kernel(x, x, x, np.arange(10), options=Options())["point_id"].size)
"""
WITHOUT = "import spatialq.udfs.owm_ground.cpu"


def run(code):
    command = [sys.executable, "-c", NO_FOLDER + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow  # all functions are compiled anew
def test_kernels_without_a_folder_for_the_cache():
    assert "cannot cache function" in run(WITHOUT).stderr
    result = run(RUN)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0
