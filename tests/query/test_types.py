"""Type checkers know the methods of queries, and what these take and give.

mypy is strict by `pyproject.toml`.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def checked(path):
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-pretty", str(path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout


@pytest.mark.slow
def test_code_of_users_is_typed():
    found = checked(HERE / "typed_example.py")
    assert "Success" in found, found


@pytest.mark.slow
def test_wrong_code_is_found():
    path = HERE / "typed_errors.py"
    lines = path.read_text().splitlines()
    wrong = {k for k, line in enumerate(lines, start=1) if line.endswith("# error")}
    found = re.findall(r"typed_errors\.py:(\d+): error", checked(path))
    assert set(map(int, found)) == wrong
