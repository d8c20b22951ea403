"""`python -m spatialq` is the command line."""

from spatialq.cli.main import main

main()
