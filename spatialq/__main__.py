"""`python -m spatialq` is the command line."""

from spatialq.cli import main

main()
