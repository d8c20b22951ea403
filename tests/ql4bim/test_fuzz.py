"""Any text is a program or a ScriptError, and nothing else; what compiles is SQL."""

import re
from pathlib import Path
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given, note, settings

from spatialq.errors import ScriptError
from spatialq.ql4bim.operators import operators
from spatialq.ql4bim.program import Program, compile_script

SCRIPTS = [
    path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parent / "golden").glob("*.ql4bim"))
]
TOKEN = re.compile(r'"[^"]*"|\w+|\s+|[^\w\s]')
WORDS = sorted(
    {token for script in SCRIPTS for token in TOKEN.findall(script)}
    | {name for each in operators() for name in (each.name, *each.shorts)}
    | {"func", "is", "and", "or", "not", "unknown", "true", "r[1]", "2mm", "-1e308", "1e999", "[]"}
    | {'"', "/*", "*/", "//", "\0", "\ud800", "\N{ARABIC-INDIC DIGIT THREE}", "\N{SUPERSCRIPT TWO}"}
)
FULL = not settings().derandomize
"""Whether this is no quick run; all together 100,000 texts are tried then."""


def many(count: int) -> settings:
    return settings(max_examples=count if FULL else 10, deadline=None)


def is_answered(text: str) -> Program | None:
    """Compile a text; whatever is wrong with it must be said as a ScriptError."""
    try:
        program = compile_script(text)
    except ScriptError as error:
        if min(error.line, error.column) < 1:
            pytest.fail(str(error))
        return None
    if program.variables:
        assert program.sql()
    return program


def any_words(random: Random) -> str:
    return " ".join(random.choices(WORDS, k=random.randint(0, 40)))


def mutated(random: Random) -> str:
    """Give a script with some of its tokens changed, left out, or taken from another one."""
    tokens = TOKEN.findall("\n".join(random.choices(SCRIPTS, k=random.randint(1, 2))))
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(tokens))
        end = at + random.randint(0, 2)
        tokens[at:end] = random.choices(WORDS, k=random.randint(0, 2))
        tokens = tokens or ["x"]
    return "".join(tokens)


def characters(random: Random) -> str:
    """Give a script with characters of all of Unicode in it."""
    text = random.choice(SCRIPTS)
    for _ in range(random.randint(1, 3)):
        at = random.randint(0, len(text))
        sign = chr(random.choice([random.randrange(128), random.randrange(0x3000), 0x1F600]))
        text = text[:at] + sign + text[at + random.randint(0, 3) :]
    return text


@pytest.mark.slow
@pytest.mark.parametrize("make", [any_words, mutated, characters])
@many(320)
@given(seed=st.integers(0, 2**64))
def test_generated_texts(make, seed):
    """A hundred texts of each seed, as to draw them one by one takes longer than to compile."""
    random = Random(seed)
    for _ in range(100):
        text = make(random)
        note(text)
        is_answered(text)


@pytest.mark.slow
@many(4_000)
@given(st.text(max_size=60))
def test_any_text(text):
    is_answered(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "x = A(" + "(" * 100_000 + ")" * 100_000,
        "x = " + "A(" * 100_000,
        "x = A(" + "not " * 100_000 + "y)",
        "x = A(y" + " and y" * 20_000 + ")",
        "x = A(y" + ".a" * 20_000 + ")",
        "/*" * 200_000,
        "/*" * 100_000 + "*/" * 100_000,
        'x = IM("' + "a" * 1_000_000 + '")',
        'x = IM("' + "\\" * 1_000_001 + '"',
        '"' * 1_000_001,
        "x" * 1_000_000,
        "1" * 1_000_000,
        "x = A(" + "9" * 100_000 + ")",
        "x = A(1" + "0" * 300 + "mm)",
        "x[" + "a|" * 20_000 + "b] = A(c)",
        "\n" * 1_000_000 + "x",
        "x\0" * 1_000,
        "func F(a) (b = F(a)) " * 2_000,
    ],
    ids=lambda text: f"{text[:10]}...",
)  # fmt: skip
def test_large_and_deep_texts(text):
    is_answered(text)


def test_functions_that_call_each_other_end():
    levels = range(1, 40)
    functions = "\n".join(f"func F{k}(a) (b = F{k - 1}(a) c = F{k - 1}(b))" for k in levels)
    script = f'm = IM("a.ifc") x = F39(m)\nfunc F0(a) (b = TF(a is IfcWall))\n{functions}'
    with pytest.raises(ScriptError, match="more than 10,000 calls"):
        compile_script(script)


# scripts that are right


@st.composite
def right(draw: st.DrawFn) -> str:
    """A script without an error: each statement takes what those before it gave."""
    lines = ['m = ImportModel("house.ifc")', "r[a|b] = Deassociater(m.HasOpenings)"]
    sets, relations = ["m"], ["r"]
    text = st.sampled_from(["x", "it's", 'a \\"b\\"', "é\U0001f3e0", "%", "$1", "{}", "\\\\"])
    number = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6)).map(str)
    name = st.sampled_from(["w", "x1", "select", "rel", "whole", "größe", "_y", "a", "m"])

    def condition(of: str) -> str:
        """A condition on a set, or on a column of a relation."""
        sign = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
        quoted, amount = draw(text), draw(number)
        return draw(
            st.sampled_from(
                [
                    f"{of} is IfcDoor", f"{of} is ifcbuiltelement", f'{of}.Name {sign} "{quoted}"',
                    f'{of}.Name ~ "(?i){"x"}"', f"{of}.OverallHeight {sign} {amount}",
                    f"{of}.OverallHeight {sign} {amount}mm", f"{of}.Tag = unknown",
                    f"{of}.Pset_WallCommon.IsExternal != true",
                    f"{of}.Qto_WallBaseQuantities.Length {sign} 2 m",
                    f'{of}."My Set"."a \'b\'" = "{quoted}"', f"{of}.HasOpenings {sign} 2",
                    f"{of}.Name = {of}.Tag", f"{of}.OverallHeight > {of}.OverallWidth",
                    f"{of}.storey = \"{quoted}\"", f"{of} > 1" if of != "x" else "",
                ]
            )
        )  # fmt: skip

    for _ in range(draw(st.integers(1, 6))):
        new = draw(name)
        one, other = draw(st.sampled_from(sets)), draw(st.sampled_from(sets))
        relation = draw(st.sampled_from(relations))
        join = draw(st.sampled_from([" and ", " or ", ", ", " and not "]))
        kind = draw(st.integers(0, 6))
        if kind == 0:
            lines.append(f"{new} = AttributeFilter({one}, {condition(one)}{join}{condition(one)})")
        elif kind == 1:
            wanted = f"{condition('[a]')}{join}{condition('[b]')}"
            lines.append(f"{new}[a|b] = AttributeFilter({relation}, {wanted})")
        elif kind == 2:
            lines.append(f"{new} = Projector({relation}, [{draw(st.sampled_from('ab12'))}])")
        elif kind == 3:
            word = draw(st.sampled_from(["Touches", "AboveStrict", "Distance", "Disjoint", "CT"]))
            lines.append(f"{new}[a|b] = {word}({one}, {other})")
        elif kind == 4:
            lines.append(f"{new} = {draw(st.sampled_from(['UN', 'IN', 'DI']))}({one}, {other})")
        elif kind == 5:
            lines.append(f"{new}[a|b] = Maximum({relation}, [b].OverallHeight)")
        else:
            lines.append(f"{new}[a|b] = Touches({relation}, [a], {other})")
        is_set = kind in (0, 2, 4)
        for names, belongs in ((sets, is_set), (relations, not is_set)):
            if new in names and not belongs:
                names.remove(new)
            if belongs and new not in names:
                names.append(new)
        if not sets or not relations:
            break
    return "\n".join(lines)


@pytest.mark.slow
@settings(max_examples=300 if FULL else 20, deadline=None)
@given(right())
def test_what_compiles_is_sql(session_con, script):
    program = compile_script(script)
    for name in program.variables:
        assert session_con.sql(program.sql(name)).columns
