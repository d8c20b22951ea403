"""`python -m spatialq` is the command line."""

import atexit
import gc
import os
import signal
import sys

INTERRUPTED = (128 + signal.SIGINT, 128 + signal.SIGTERM)


def main() -> None:
    """Run the command line, and end at once when it was interrupted.

    Python would wait for its threads and DuckDB free all that it had loaded, which takes seconds.
    By then files are closed, and temporary ones removed. Otherwise the process ends after what
    modules have to do at the end: to free each of them takes a tenth of a second.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while modules are imported
    outcome = {"status": 1}
    atexit.register(_leave, outcome)  # the first one is called last
    gc.disable()  # what is imported stays, and to look through it again and again takes time
    from spatialq.cli.main import main as run

    gc.enable()
    try:
        run()
    except SystemExit as end:
        outcome["status"] = int(end.code or 0)
        if end.code in INTERRUPTED:
            _leave(outcome)
        raise
    outcome["status"] = 0


def _leave(outcome: dict[str, int]) -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # as it is where the shell has closed it
            stream.flush()
    os._exit(outcome["status"])


if __name__ == "__main__":
    main()
