"""How many random examples tests of properties take."""

from hypothesis import settings


def examples(n: int) -> settings:
    """Take n random examples of a property, and a tenth of them under `make check`."""
    return settings(max_examples=max(1, n * settings().max_examples // 100))
