"""What the library of the extension holds."""

import time

from spatialq.database.native import library

PATIENCE = 60
"""Seconds in which a kernel that was stopped has ended on a machine that does much else."""


def held():
    """How many results and inputs the extension holds, once its threads have ended."""
    known = library.library()
    until = time.monotonic() + PATIENCE
    while known.spatialq_count_calls() or known.spatialq_count_collected():
        if time.monotonic() > until:
            break
        time.sleep(0.01)
    return known.spatialq_count_calls(), known.spatialq_count_collected()
