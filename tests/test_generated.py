"""What is derived from the declarations is as it stands in the checkout: `make generate`."""

from pathlib import Path

from spatialq.database.macros import macros
from spatialq.functions.generator import generated

ROOT = Path(__file__).parents[1]


def test_nothing_drifted():
    old = [
        str(path.relative_to(ROOT))
        for path, text in generated(ROOT).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not old, f"run `make generate`: {', '.join(old)}"


def test_every_macro_stands_in_one_file():
    names = [macro.name for macro in macros("lists")]
    assert len(names) == len(set(names)) >= 72
