"""Ten specifications over the largest models: `check_ids` beside IfcTester, in turns.

python benchmarks/check_ids.py [MODEL ...] [--rival PYTHON] [--repeat N] [--out FOLDER]

Seconds of processors, from the files to what came of each object: reading the IDS and the model,
and checking. Ours include the process that reads the model, from its start on; of IfcTester's
process the imports are left out, so that the ratio flatters it. --rival is a Python with IfcTester
(`pip install ifctester`); without it there are our times alone. The objects that fail are compared,
and how many differ is listed.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile
import zipfile
from pathlib import Path

import ifcopenshell
import measure
from registry import DATA

from spatialq.io.ids.checks import check
from spatialq.io.ids.files import read_ids

MODELS = (
    "revit2012_janesville_restaurant.ifczip", "Office_A_20110811.ifc",
    "AC11-Institute-Var-2-IFC.ifc", "AC20-FZK-Haus.ifc", "Duplex_A_20110907.ifc",
)  # fmt: skip
ELEMENTS = (
    "IFCWALL", "IFCWALLSTANDARDCASE", "IFCSLAB", "IFCDOOR", "IFCWINDOW", "IFCBEAM", "IFCCOLUMN",
    "IFCMEMBER", "IFCPLATE", "IFCRAILING", "IFCCOVERING", "IFCSPACE", "IFCFURNISHINGELEMENT",
    "IFCFLOWTERMINAL", "IFCBUILDINGELEMENTPROXY",
)  # fmt: skip
"""Classes of the specifications that are about elements in general."""
RIVAL = """
import json, sys, time
import ifcopenshell, ifctester.ids
started = time.process_time()
ids = ifctester.ids.open(sys.argv[2], validate=False)
model = ifcopenshell.open(sys.argv[1])
opened = time.process_time() - started
ids.validate(model)
said = [sorted({each["element"].id() for facet in one.requirements for each in facet.failures})
        for one in ids.specifications]
json.dump({"opened": opened, "seconds": time.process_time() - started, "failed": said}, sys.stdout)
"""


def simple(name, value):
    return f"<{name}><simpleValue>{value}</simpleValue></{name}>"


def restricted(name, inner, base="xs:string"):
    return f'<{name}><xs:restriction base="{base}">{inner}</xs:restriction></{name}>'


def one_of(names):
    inner = "".join(f'<xs:enumeration value="{name}"/>' for name in names)
    return f"<entity>{restricted('name', inner)}</entity>"


def prop(pset, name, kind, value=""):
    inner = simple("propertySet", pset) + simple("baseName", name) + value
    return f'<property dataType="{kind}">{inner}</property>'


WALLS = one_of(("IFCWALL", "IFCWALLSTANDARDCASE"))
RULES = (
    ("Elements are named", one_of(ELEMENTS), f"<attribute>{simple('name', 'Name')}</attribute>"),
    ("Names are neither short nor long", one_of(ELEMENTS),
     "<attribute>" + simple("name", "Name")
     + restricted("value", '<xs:minLength value="3"/><xs:maxLength value="60"/>')
     + "</attribute>"),
    ("Tags are numbers", one_of(ELEMENTS[:11]),
     "<attribute>" + simple("name", "Tag")
     + restricted("value", '<xs:pattern value="[0-9]+"/>') + "</attribute>"),
    ("Walls say whether they are external", WALLS,
     prop("Pset_WallCommon", "IsExternal", "IFCBOOLEAN")),
    ("Walls say whether they bear loads", WALLS,
     prop("Pset_WallCommon", "LoadBearing", "IFCBOOLEAN", simple("value", "true"))),
    ("Doors have a fire rating", one_of(("IFCDOOR",)),
     prop("Pset_DoorCommon", "FireRating", "IFCLABEL")),
    ("Doors are high enough", one_of(("IFCDOOR",)),
     "<attribute>" + simple("name", "OverallHeight")
     + restricted("value", '<xs:minInclusive value="2.0"/>', "xs:double") + "</attribute>"),
    ("Elements have a material", one_of(ELEMENTS[:11]), "<material/>"),
    ("Elements are in a storey", one_of(ELEMENTS[:11]),
     f"<partOf><entity>{simple('name', 'IFCBUILDINGSTOREY')}</entity></partOf>"),
    ("Elements are classified", one_of(ELEMENTS),
     "<classification>" + restricted("system", '<xs:minLength value="1"/>')
     + "</classification>"),
)  # fmt: skip


def write_rules(path):
    parts = [
        f'<specification name="{name}" ifcVersion="IFC2X3 IFC4"><applicability minOccurs="0" '
        f'maxOccurs="unbounded">{of}</applicability><requirements>{asked}</requirements>'
        "</specification>"
        for name, of, asked in RULES
    ]
    path.write_text(
        '<ids xmlns="http://standards.buildingsmart.org/IDS" '
        'xmlns:xs="http://www.w3.org/2001/XMLSchema"><info><title>Ten rules</title></info>'
        f"<specifications>{''.join(parts)}</specifications></ids>",
        encoding="utf-8",
    )
    return path


def processor():
    """Seconds of this process and of those that it has waited for."""
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def ours(path, rules):
    started = processor()
    (rows,) = check(read_ids(rules), [path])
    seconds = processor() - started
    failed = {(row["specification_number"], row["step_id"]) for row in rows.to_pylist()
              if row["status"] == "failed"}  # fmt: skip
    said = [sorted(step for number, step in failed if number == k + 1) for k in range(len(RULES))]
    return seconds, rows.num_rows, said


def theirs(path, rules, python):
    run = subprocess.run(
        [*python.split(), "-W", "ignore", "-c", RIVAL, path, rules],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(run.stdout)


def unpacked(path, folder):
    """Give the file of a model; IfcTester's reader takes no archives."""
    if path.suffix != ".ifczip":
        return path
    with zipfile.ZipFile(path) as archive:
        (name,) = archive.namelist()
        return Path(archive.extract(name, folder))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rival", help="a Python with IfcTester")
    parser.add_argument("--repeat", type=int, default=3)
    measure.add_arguments(parser)
    chosen = parser.parse_args()
    there = [DATA / "ifc" / name for name in MODELS]
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rules = write_rules(folder / "rules.ids")
        for given in chosen.models or [path for path in there if path.exists()]:
            path = unpacked(given, folder)
            best, rival = [], []
            for _ in range(chosen.repeat):
                best.append(ours(path, rules))
                if chosen.rival:
                    rival.append(theirs(path, rules, chosen.rival))
            seconds, checks, failed = min(best)
            row = {"model": given.stem, "megabytes": round(path.stat().st_size / 1e6, 1),
                   "checks": checks, "failed": sum(map(len, failed)),
                   "seconds": round(seconds, 2)}  # fmt: skip
            if rival:
                least = min(rival, key=lambda each: each["seconds"])
                row |= {"ifctester": round(least["seconds"], 2),
                        "ifctester_open": round(least["opened"], 2),
                        "times_as_fast": round(least["seconds"] / seconds, 2),
                        "differ": {RULES[k][0]: len(set(a) ^ set(b)) for k, (a, b) in
                                   enumerate(zip(failed, least["failed"], strict=True))
                                   if a != b}}  # fmt: skip
            print(*(f"{key}={value}" for key, value in row.items()), flush=True)
            rows.append(row)
    report = {"command": "python benchmarks/check_ids.py", "commit": chosen.commit,
              "repeat": chosen.repeat, "cores": os.cpu_count(),
              "ifcopenshell": ifcopenshell.version, "rows": rows}  # fmt: skip
    measure.write(chosen.out, "check_ids", report)


if __name__ == "__main__":
    main()
