"""`spatialq devices`: what there is to compute with."""

from spatialq.cli.options import Json
from spatialq.cli.rendering import show


def devices(*, as_json: Json = False) -> None:
    """List the processors that there are to compute with."""
    from spatialq.database.connection import connect_quietly
    from spatialq.workflows.tables import dicts

    show(dicts(connect_quietly().sql("FROM spatialq_devices()")), as_json=as_json)
