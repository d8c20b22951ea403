"""QL4BIM scripts: from a text to the steps of a query.

| step | module |
| --- | --- |
| text to statements | `parser`, with `grammar.lark`, to the classes of `syntax`; errors show the place: `text` |
| names and types, each call to a step | `compiler`, `use`, `operators`: one table of operators |
| conditions and attributes to SQL | `conditions`, `attributes` |
| meshes for what spatial operators need | `meshes` |
| what a script is, and running it | `program`, `run`, `sql_macro` |

Scripts of the published program run unchanged; docs/ql4bim.md lists where the answers differ.
"""
