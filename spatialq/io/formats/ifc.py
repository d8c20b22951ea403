"""Building models: `spatialq.io.ifc`."""

from spatialq.io.formats import Reader

READER = Reader(
    name="IFC",
    suffixes=(".ifc", ".ifczip"),
    kind="ifc",
    open=None,
    skips="meshes, where a query needs none",
    keeps="objects, relations, properties, materials, classifications, meshes, map conversion",
    loses="curves and surfaces, of which meshes are made",
    extra="ifc",
)
