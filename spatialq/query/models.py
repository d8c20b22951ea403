"""The tables of the building model that elements are of: objects, relations and so on."""

from collections.abc import Callable
from dataclasses import dataclass, field

from spatialq.database.model_tables import beside_elements, beside_objects
from spatialq.functions.sql_text import literal
from spatialq.query.steps import Step, Table, sql, written

READERS = ("relations", "properties", "materials", "classifications")


@dataclass(frozen=True)
class Model:
    """Where the tables of a model are; each is written only where it is used."""

    objects: Step | Table
    others: dict[str, Step | Table] = field(default_factory=dict)

    def table(self, name: str) -> Step | Table:
        """Give a table of the model by the name that `load` gives it."""
        return self.objects if name == "objects" else self.others[name]

    def is_same(self, other: "Model | None") -> bool:
        """Whether both are of the same files or the same tables, however they were come by."""
        return other is not None and _begins_with(self.objects) == _begins_with(other.objects)


def _begins_with(objects: Step | Table) -> object:
    return objects.name.lower() if isinstance(objects, Table) else objects.source


def of_file(stem: str, path: str, objects: Step | None = None) -> Model:
    """Say how the tables of the models in a file, or in several, are read."""
    objects = objects or Step(f"{stem}_objects", sql(f"read_ifc_objects({literal(path)})"))
    others: dict[str, Step | Table] = {
        name: Step(name, sql(f"read_ifc_{name}({literal(path)})"), beside=objects)
        for name in READERS
    }
    return Model(objects, others)


def of_table(elements: str) -> Model:
    """Name the tables that are beside a table of elements."""
    return _beside(beside_elements, elements)


def of_objects(objects: str) -> Model:
    """Name the tables that are beside a table of objects."""
    return _beside(beside_objects, objects)


def _beside(name: Callable[[str, str], str], table: str) -> Model:
    tables: dict[str, Step | Table] = {
        each: Table(written(name(table, each))) for each in ("objects", *READERS)
    }
    return Model(tables.pop("objects"), tables)
