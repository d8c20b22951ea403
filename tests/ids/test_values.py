"""What an IDS allows: numbers, against fractions; patterns, against elementpath."""

import re
import unicodedata
from fractions import Fraction

import pyarrow as pa
import pytest
from elementpath.regex import translate_pattern
from hypothesis import given
from hypothesis import strategies as st

from spatialq.io.ids.patterns import PatternError, is_match, translated
from spatialq.io.ids.values import Value, compared, seconds_of

EPSILON = Fraction(1, 10**6)
NUMBERS = st.decimals(-(10**9), 10**9, places=9).map(lambda number: f"{number:f}")


@given(NUMBERS, st.sampled_from([0, 1, -1, 2, -2]), st.integers(-3, 3))
def test_numbers_are_equal_within_the_tolerance_of_their_decimals(text, side, ulps):
    number = Fraction(text)
    value = float(number + side * (abs(number) * EPSILON + EPSILON) / 1)
    value = float(repr(value + ulps * 1e-12 * max(1, abs(value))))
    off = abs(Fraction(repr(value)) - number)
    expected = off <= abs(number) * EPSILON + EPSILON
    assert (compared(value, text, None) == 0) == expected
    if not expected:
        assert compared(value, text, None) == (1 if Fraction(repr(value)) > number else -1)


@pytest.mark.parametrize(
    ("bounds", "inside", "outside"),
    [
        ({"minInclusive": "1"}, [1.0, 0.999998, 2.0], [0.999997]),
        ({"minExclusive": "1"}, [1.0000021], [1.0, 1.000002, 0.5]),
        ({"maxInclusive": "1"}, [1.0, 1.000002, 0.0], [1.0000021]),
        ({"maxExclusive": "1"}, [0.9999979], [1.0, 0.999998]),
        ({"minInclusive": "1", "maxExclusive": "3"}, [1, 2], [0, 3, 4]),
    ],
)
def test_what_equals_a_bound_is_on_it(bounds, inside, outside):
    value = Value(1, base="xs:double", bounds=bounds)
    assert value.of_values(inside).all()
    assert not value.of_values(outside).any()


def test_whole_numbers_are_equal_only_if_they_are_the_same():
    large = Value(1, simple="1000000")
    assert large.of_values([1_000_000, 1_000_001, 1_000_001.0, True, "1000000"]).tolist() == [
        True, False, True, False, True,
    ]  # fmt: skip


def test_truth_is_in_small_letters_or_a_digit():
    for text, expected in (("true", [True, False]), ("0", [False, True]), ("TRUE", [False, False])):
        assert Value(1, simple=text).of_values([True, False]).tolist() == expected


def test_lengths_count_characters():
    value = Value(1, base="xs:string", lengths={"minLength": 2, "maxLength": 3})
    assert value.of_texts(["a", "äö", "äöü", "abcd"]).tolist() == [False, True, True, False]
    assert not value.of_values([10, 2.5]).any()


def test_dates_and_durations_have_an_order():
    dates = Value(1, base="xs:date", bounds={"minInclusive": "2026-01-31"})
    assert dates.of_texts(["2026-01-31", "2026-02-01", "2025-12-31", "soon"]).tolist() == [
        True, True, False, False,
    ]  # fmt: skip
    assert seconds_of("PT1H30M") == 5400 < seconds_of("P1D") < seconds_of("P1M")
    assert seconds_of("-PT1.5S") == -1.5
    assert seconds_of("P") is seconds_of("1D") is None


PATTERNS = [
    "DT[0-9]{2}", "a|bc", "(ab)+c?", r"\d+\.\d*", r"\s*", r"\S+",
    "[a-z-[aeiou]]+", "[^a-c]", r"\p{Lu}\p{Ll}*", r"\P{L}+", "^a$", "a.c", r"[\-a]", "x{0,2}y{1,}",
    r"\p{IsGreek}+", r"\i\c*", "a{2}b", "", "ä+", r"[\d-[5]]", r"\(\)\[\]\{\}", "[+*?.]",
]  # fmt: skip
TEXTS = [
    "", "DT01", "DT1", "XDT01", "a", "bc", "ab", "ababc", "3.14", "3.", "x_y", "wort", "Wört", "$",
    "a-b.c", " ", "\t\n", "bcd", "bad", "d", "Ä", "Haus", "12", "^a$", "a\nc", "abc", "-", "y",
    "xxyy",
    "αβγ", "_id-1", "aab", "ää", "4", "5", "()[]{}", "+", "a b",
]  # fmt: skip


TEXTS_ARRAY = pa.array(TEXTS)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_are_those_of_xml_schema(pattern):
    oracle = re.compile(
        translate_pattern(pattern, back_references=False, lazy_quantifiers=False, anchors=False)
    )
    found = is_match(TEXTS_ARRAY, translated(pattern)).tolist()
    assert found == [oracle.fullmatch(text) is not None for text in TEXTS]


@pytest.mark.parametrize(
    "pattern", ["(", ")", "*a", "a**", "a+?", "[]", "[a", r"\q", r"\p{Xx}", "a{3,2}", "a{", "(?i)a",
                "a{1001}", "[a[b]", "\\"],
)  # fmt: skip
def test_other_patterns_are_refused(pattern):
    with pytest.raises(PatternError):
        translated(pattern)


def test_a_word_has_no_punctuation_separators_and_other_characters():
    # XML Schema Part 2, appendix F.1.1; elementpath takes what Python calls a word
    texts = [chr(code) for code in (*range(0x300), 0x2003, 0x20AC, 0x1F600)]
    expected = [unicodedata.category(text)[0] not in "PZC" for text in texts]
    for pattern in (r"\w", r"[\w]", r"[^\W]"):
        assert is_match(pa.array(texts), translated(pattern)).tolist() == expected
    assert (~is_match(pa.array(texts), translated(r"\W"))).tolist() == expected


def test_a_pattern_that_backtracks_takes_no_time():
    value = Value(1, base="xs:string", patterns=(("(a+)+b", translated("(a+)+b")),))
    assert not value.of_texts(["a" * 100_000]).any()


def test_long_values_are_said_in_short():
    codes = Value(1, enumeration=tuple(f"Ss_{k}" for k in range(2000)))
    assert str(codes).startswith("one of 'Ss_0', 'Ss_1', ")
    assert str(codes).endswith("'Ss_19' and 1,980 more")
    pattern = "a|" * 5000 + "b"
    assert len(str(Value(1, patterns=((pattern, pattern),)))) < 250
    assert str(Value(1, simple="x" * 300)) == f"'{'x' * 200}…'"
    assert str(Value(1, enumeration=("a", "b"))) == "one of 'a', 'b'"
