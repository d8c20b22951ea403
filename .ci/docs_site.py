"""Hooks of MkDocs: pages of the site that are not in docs/, and links that go there.

Pages are written for readers of the repository: a link is relative to the file that has it. On the
site the content of docs/ is at the top, and the other pages have their paths in the repository.
"""

import html
import os.path
import re
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).parents[1]
OTHERS = (
    "README.md", "CHANGES.md", "CONTRIBUTING.md", "*/README.md", "udfs/*/README.md",
    "benchmarks/pictures/*.png",
)  # fmt: skip
INTERNAL = ("spatialq_arguments", "spatialq_frames")
"""Files of sql/ whose macros only other macros call; those named `…_aggregate` likewise."""
LINK = re.compile(r"\[((?:`[^`]*`|[^][`])*)\]\(([^)\s]+)\)")
MACRO = re.compile(
    r"((?:^--.*\n)+)^CREATE OR REPLACE MACRO (\w+\([^)]*\))( AS TABLE)?", re.MULTILINE
)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not in docs/."""
    from mkdocs.structure.files import File

    for path in sorted(path for pattern in OTHERS for path in ROOT.glob(pattern)):
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    files.append(File.generated(config, "sql.md", content=sql_page()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Let links between files of the repository lead to their pages.

    Of a link to a file that is not on the site, such as a source, the text remains. A link to
    nothing stays as it is: MkDocs warns about it.
    """
    here = PurePosixPath(page.file.src_uri)
    folder = (ROOT / "docs" / here if (ROOT / "docs" / here).exists() else ROOT / here).parent

    def on_site(link: re.Match[str]) -> str:
        path, mark, anchor = link[2].partition("#")
        target = Path(os.path.normpath(folder / path))
        if not path or not target.is_relative_to(ROOT) or not target.exists():
            return link[0]
        name = target.relative_to(ROOT).as_posix().removeprefix("docs/")
        if files.get_file_from_path(name) is None:
            return link[1]
        return f"[{link[1]}]({os.path.relpath(name, here.parent)}{mark}{anchor})"

    return LINK.sub(on_site, markdown)


def sql_page() -> str:
    """Write the reference of all macros from their declarations in sql/."""
    parts = ["# SQL\n\nAll macros and their parameters, as `duckdb_functions()` describes them."]
    for path in sorted((ROOT / "sql").glob("*.sql")):
        if path.stem not in INTERNAL:
            for comment, signature, table in MACRO.findall(path.read_text(encoding="utf-8")):
                if "_aggregate(" not in signature:
                    parts.append(macro(comment, signature, is_table=bool(table)))
    return "\n\n".join(parts)


def macro(comment: str, signature: str, *, is_table: bool) -> str:
    """Write what the reference says of one macro."""
    text = re.sub(r"^-- ?", "", comment, flags=re.MULTILINE).strip()
    lines = re.sub(r"\n {4}", " ", text).splitlines()
    named = [found.groups() for line in lines if (found := re.match(r"(\w+): (.*)", line))]
    parts = [
        f"## {signature.partition('(')[0]}",
        f"```sql\n{'FROM' if is_table else 'SELECT'} {signature}\n```",
        plain(" ".join(line for line in lines if not re.match(r"\w+: ", line))),
        "\n".join(
            f"- `{name}`: {plain(said)}" for name, said in named if name not in ("gives", "example")
        ),
        *(f"Columns of the result: {plain(said)}" for name, said in named if name == "gives"),
        *(f"```sql\n{said}\n```" for name, said in named if name == "example"),
    ]
    return "\n\n".join(part for part in parts if part)


def plain(text: str) -> str:
    """Write a text in Markdown as it is, such as `tiles/*.laz` or `<a>_relations`."""
    return re.sub(r"([*_])", r"\\\1", html.escape(text, quote=False))
