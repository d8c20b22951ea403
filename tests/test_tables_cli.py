"""Tables that a terminal is too narrow for."""

import pytest

from spatialq.cli.rendering import fitting, show


def test_all_columns_where_they_fit():
    assert fitting([5, 5], 17) == ([0, 1], None)
    assert fitting([5], 80) == ([0], None)


def test_long_texts_are_folded_first():
    assert fitting([22, 300], 80) == ([0, 1], 40)


@pytest.mark.parametrize("width", [1, 20, 40, 60, 80, 200])
def test_columns_in_the_middle_are_left_out(width):
    widths = [22, 10, 60, 3, 8, 12, 5] * 3
    kept, widest = fitting(widths, width)
    at = kept.index(None)
    left, right = kept[:at], kept[at + 1 :]
    assert left == [*range(len(left))]
    assert right == [*range(len(widths) - len(right), len(widths))]
    assert left
    assert 0 <= len(left) - len(right) <= 1
    used = 1 + 4 + sum(min(widths[k], widest) + 3 for k in (*left, *right))
    assert used <= width or len(kept) == 2


def test_global_ids_are_whole_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    row = {"global_id": "0acIFU27POY85IkRfgiO3V"} | {f"column_{k}": k for k in range(23)}
    show([row], as_json=False)
    captured = capsys.readouterr()
    assert "0acIFU27POY85IkRfgiO3V" in captured.out
    assert "column_22" in captured.out
    assert "column_11" not in captured.out
    assert captured.err.startswith("only ")
    assert captured.err.endswith(" of 24 columns are shown\n")
