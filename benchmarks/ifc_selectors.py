"""How long selectors and classes take, as ratios.

    python benchmarks/ifc_selectors.py MODEL.ifc

`objects_where` against `filter_elements` of IfcOpenShell on an open model, with the same results;
and `is_a` against the comparison of the class with one name, on a million rows. The best of five
runs of each, which alternate.
"""

import argparse
import time
from collections.abc import Callable

import spatialq

SELECTORS = (
    "IfcWall",
    "IfcElement, Name!=NULL",
    "/Pset_.*Common/./Is.*/=TRUE",
    "IfcProduct, material=/.*/",
    "IfcProduct, location=/.*/",
    'IfcProduct, query:"storey.Name"!=NULL',
)
CLASSES = {
    "IfcWall": "ifc_class = 'IfcWall'",
    "IfcBuildingElement": "is_a(ifc_class, 'IfcBuildingElement')",
    "IfcBuildingElement, schema": "is_a(ifc_class, 'IfcBuildingElement', ifc_schema := 'IFC4')",
    "IfcBuildingElement, own": "is_a(ifc_class, 'IfcBuildingElement', ifc_schema := ifc_schema)",
}
RUNS = 5


def best(*calls: Callable[[], object]) -> list[float]:
    """Give the shortest time of each call in seconds."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(RUNS):
        for call, each in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            each.append(time.perf_counter() - start)
    return [min(each) for each in times]


def main() -> None:
    """Print both tables."""
    import ifcopenshell
    from ifcopenshell.util.selector import filter_elements

    from spatialq.io.ifc.model import read_model

    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    path = parser.parse_args().model
    con = spatialq.connect()
    for name, table in read_model(path, geometry="none").tables.items():
        con.register("incoming", table)
        con.execute(f"CREATE TABLE {name} AS FROM incoming")
    model = ifcopenshell.open(path)
    sql = "SELECT count(*) FROM objects_where($selector)"
    for selector in SELECTORS:
        theirs, ours = best(
            lambda selector=selector: filter_elements(model, selector),
            lambda selector=selector: con.execute(sql, {"selector": selector}).fetchall(),
        )
        print(f"{selector:40} {theirs * 1000:8.1f} ms {ours * 1000:8.1f} ms {theirs / ours:6.1f}")

    con.execute(
        "CREATE TABLE million AS SELECT list_extract(['IfcWall', 'IfcSlab', 'IfcDoor', 'IfcSpace', "
        "'IfcPipeSegment'], 1 + (random() * 5)::INTEGER) AS ifc_class, 'IFC4' AS ifc_schema "
        "FROM range(1000000)"
    )
    counts = [f"SELECT count(*) FROM million WHERE {condition}" for condition in CLASSES.values()]
    times = best(*(lambda sql=sql: con.execute(sql).fetchall() for sql in counts))
    for name, seconds in zip(CLASSES, times, strict=True):
        print(f"{name:40} {seconds * 1000:8.1f} ms {seconds / times[0]:6.1f}")


if __name__ == "__main__":
    main()
