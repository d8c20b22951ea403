"""QL4BIM scripts: from a text to the steps of a query.

| step | module |
| --- | --- |
| text to statements | `parser`, with `grammar.lark`, to the classes of `syntax`; errors show the place: `text` |
| names and types, each call to a step | `compiler`, `use`, `operators`: one table of operators |
| conditions and attributes to SQL | `conditions`, `attributes` |
| meshes for what spatial operators need | `meshes` |
| what a script is, and running it | `program`, `run`, `sql_macro` |

Scripts of the published program run unchanged. Where it gives something else, ours is meant:

| published program | here |
| --- | --- |
| `<` and `>` of whole numbers are reversed | numbers compare as numbers, whole ones and others alike |
| all signs between texts mean equality in any case of letters | `=` and `!=` compare exactly, `<` in the order of the alphabet, `~` is a regular expression; `(?i)` for any case |
| truth values, and attributes with attributes, never compare | they compare |
| an unknown operator, variable, column or class gives an empty result or ends the program | an error with line, column and the near names |
| only HasOpenings, HasFillings, ContainedInStructure and ReferencedBy can be followed; of relations always the second column | all inverse attributes of IFC2X3, IFC4 and IFC4X3 that lead over a relationship, of any column |
| Dereferencer, PropertyFilter and count predicates fail | they work |
| all spatial operators but Overlaps and Touches give nothing | they work, as the SQL functions define them |
| Touches is not symmetric; Overlaps shrinks both by 50 mm, or units | contact and common interior to a tolerance in metres, 1 mm by default |
| +X is north, +Y is east | +Y is north (or true north, if the model has it), +X is east |
| lengths are in the unit of the file | tolerances are in metres, or have a unit; attributes compare in the unit of the file unless the number has a unit |
| Projector leaves columns in the order of the relation | in the order that is written |
| a reassigned variable keeps its number of columns | it is a new variable |
| two models with equal GlobalIds cannot be imported | each model is a set of its own |
| Maximum knows whole numbers only | any number, or text; all rows that share the greatest value |
| ExportModel writes lines without a header, with references to nothing | a whole IFC file with all that belongs to the objects |
| functions are read, and not run | they run |
"""
