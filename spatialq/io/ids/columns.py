"""The tables of checks by an IDS: column -> SQL type."""

CHECKS = {
    "specification": "VARCHAR",
    "specification_number": "INTEGER",
    "requirement": "VARCHAR",
    "requirement_number": "INTEGER",
    "facet": "VARCHAR",
    "status": "VARCHAR",
    "reason": "VARCHAR",
    "ifc_class": "VARCHAR",
    "name": "VARCHAR",
    "global_id": "VARCHAR",
    "step_id": "BIGINT",
    "file_name": "VARCHAR",
}
"""Numbers from 1, in the order of the IDS. What is of the model as a whole has no object."""
SPECIFICATIONS = {
    "specification_number": "INTEGER",
    "specification": "VARCHAR",
    "cardinality": "VARCHAR",
    "ifc_versions": "VARCHAR[]",
    "applicability": "VARCHAR[]",
    "requirements": "VARCHAR[]",
    **dict.fromkeys(("identifier", "description", "instructions", "title", "file_name"), "VARCHAR"),
}
