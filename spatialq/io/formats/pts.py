"""PTS: a count of points, then x y z, intensity and colour in lines of text."""

from spatialq.io.cloud_source import AXES
from spatialq.io.formats import Reader
from spatialq.io.formats.text import Head, TextSource, split
from spatialq.io.text_lines import SPACES, LineError, Lines

COLOUR = ("red", "green", "blue")
LAYOUTS = {
    len(names): list(names)
    for names in (
        AXES,
        (*AXES, "intensity"),
        (*AXES, *COLOUR),
        (*AXES, "intensity", *COLOUR),
    )
}
"""What the values of a line are, by their number."""


class PtsSource(TextSource):
    """A PTS file, a `spatialq.io.source.Source`; its lines are counted when it is opened."""

    def _layout(self, head: Head) -> tuple[Lines, list[str]]:
        head.skip_comments()
        self._promised = head.take_count()
        if self._promised is None:
            self.warnings.append("its first line is no count of points: the lines are counted")
        values = len(split(head.line, SPACES)) or len(AXES)
        if values not in LAYOUTS:
            message = (
                f"line {head.number} has {values} values; in PTS a point has 3, 4, 6 or 7: x y z, "
                "intensity, red green blue"
            )
            raise LineError(message)
        return head.lines(values, SPACES), LAYOUTS[values]


READER = Reader(
    name="PTS",
    suffixes=(".pts",),
    kind="points",
    open=PtsSource,
    skips="columns",
    keeps="intensity, colour",
    loses="",
)
