"""`python -m spatialq` is the command line."""

import os
import signal
import sys

INTERRUPTED = (128 + signal.SIGINT, 128 + signal.SIGTERM)


def main() -> None:
    """Run the command line, and end at once when it was interrupted.

    Python would wait for its threads and DuckDB free all that it had loaded, which takes seconds.
    By then files are closed, and temporary ones removed.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while modules are imported
    from spatialq.cli.main import main as run

    try:
        run()
    except SystemExit as end:
        if end.code in INTERRUPTED:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(int(end.code))
        raise


if __name__ == "__main__":
    main()
