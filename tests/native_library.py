"""What the library of the extension holds."""

import time

from spatialq.database.native import library


def held():
    """How many results and inputs the extension holds, once its threads have ended."""
    known = library.library()
    for _ in range(200):
        if not known.spatialq_count_calls() and not known.spatialq_count_collected():
            break
        time.sleep(0.01)
    return known.spatialq_count_calls(), known.spatialq_count_collected()
