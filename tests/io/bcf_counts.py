"""Counts what the public BCF archives hold, with bcf-client: `bcf_counts.json`.

Run in an environment of its own with `pip install bcf-client==0.9.0`, since the package is not
among the requirements of the tests:

    python tests/io/bcf_counts.py FOLDER_OF_ARCHIVES > tests/io/bcf_counts.json

bcf-client refuses most archives of 2.0, as it has the schema of 2.1; of these the elements of the
XML texts are counted.
"""

import json
import re
import sys
import zipfile
from pathlib import Path

ROLES = ("selection", "visibility", "coloring")


def counted_by_client(path):
    from bcf import bcfxml

    counts = dict.fromkeys(("topics", "comments", "viewpoints", *ROLES), 0)
    loaded = bcfxml.load(path)  # which must outlive what is read from it
    for topic in loaded.topics.values():
        counts["topics"] += 1
        counts["comments"] += len(topic.comments)
        counts["viewpoints"] += len(topic.viewpoints)
        for view in topic.viewpoints.values():
            components = view.visualization_info.components
            if components is None:
                continue
            if components.selection:
                counts["selection"] += len(components.selection.component)
            if components.visibility and components.visibility.exceptions:
                counts["visibility"] += len(components.visibility.exceptions.component)
            for colour in components.coloring.color if components.coloring else ():
                holder = getattr(colour, "components", colour)
                counts["coloring"] += len(holder.component)
    return counts


def counted_in_text(path):
    with zipfile.ZipFile(path) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()
                 if name.endswith((".bcf", ".bcfv"))}  # fmt: skip
    markups = [text for name, text in texts.items() if name.endswith("markup.bcf")]
    views = "".join(text for name, text in texts.items() if name.endswith(".bcfv"))
    components = re.findall(r"<Component\s[^>]*>", views)
    return {
        "topics": len(markups),
        "comments": sum(len(re.findall(r"<Comment\s", text)) for text in markups),
        "viewpoints": sum(len(re.findall(r"<Viewpoints\s", text)) for text in markups),
        "selection": sum('Selected="true"' in each for each in components),
        "visibility": len(components),
        "coloring": sum("Color=" in each for each in components),
    }


def main(folder):
    found = {}
    for path in sorted(Path(folder).glob("v*/*.bcf*")):
        try:
            counts = {"by": "bcf-client", **counted_by_client(path)}
        except Exception:  # of any kind that its parser raises
            if path.parent.name != "v2.0":
                raise
            counts = {"by": "text", **counted_in_text(path)}
        found[f"{path.parent.name}/{path.name}"] = counts
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
