"""What the tables of one building model are called: each beside the others."""


def beside_elements(elements: str, table: str) -> str:
    """Name a table of the model whose elements are in the table `elements`.

    Beside `elements` it is called by its own name, beside `t` by `t_` and its name. A schema may
    stand before the name.
    """
    schema, dot, name = elements.rpartition(".")
    if table == "elements":
        return elements
    return f"{schema}{dot}{table if name.lower() == 'elements' else f'{name}_{table}'}"


def beside_objects(objects: str, table: str) -> str:
    """Name a table of the model whose objects are in the table `objects`."""
    schema, dot, name = objects.rpartition(".")
    if table == "objects":
        return objects
    prefix = name[: -len("objects")] if name.lower().endswith("objects") else f"{name}_"
    return f"{schema}{dot}{prefix}{table}"
