"""`spatialq_refuse`, which fails, as `error` of DuckDB does.

`error` is volatile: in a correlated subquery DuckDB evaluates what depends on it for each outer
row, so that a kernel would run as often.
"""

from typing import Any, NoReturn

from spatialq.functions.sql_text import literal


def refuse(sentences: Any, values: Any) -> NoReturn:
    """Fail with the first sentence, and its value if the sentence ends in a space."""
    sentence, value = sentences[0].as_py(), values[0].as_py()
    message = f"{sentence}{value}" if sentence.endswith(" ") else sentence
    raise ValueError(message)


def refusal(sentence: str, value: str = "NULL") -> str:
    """Write an expression of any type of numbers that fails with a sentence.

    Parameters
    ----------
    sentence : str
        Ends in "got ", or the like, if a value follows.
    value : str
        An expression in SQL that gives it as text.
    """
    return f"spatialq_refuse({literal(sentence)}, {value})"
