"""Run the command line: in this process, which costs less, or in one of its own."""

import contextlib
import io
import json
import os
import subprocess
import sys
import warnings

import pytest

from spatialq.cli import main as cli


def spatialq_command(*arguments, cwd=None):
    """Run a command in this process; it gives what `subprocess.run` would give."""
    words = ["spatialq", *map(_word, arguments)]
    printed, said, code = io.StringIO(), io.StringIO(), None
    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(said),
    ):
        patch.setattr(sys, "argv", words)
        if cwd is not None:
            patch.chdir(cwd)
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
    return subprocess.CompletedProcess(words, code or 0, printed.getvalue(), said.getvalue())


def spatialq_process(*arguments, **options):
    """Run a command in a process of its own, as a user's shell does."""
    command = [sys.executable, "-m", "spatialq", *map(_word, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def rows(*arguments):
    """Run a command with --json and return what it printed."""
    result = spatialq_command(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout, parse_constant=pytest.fail)


def _word(argument):
    return os.fsdecode(argument) if isinstance(argument, bytes) else str(argument)
