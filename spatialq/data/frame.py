"""How coordinates are to be read: what is known of their CRS, and from where."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """What is known of the coordinates that a function gets."""

    subject: str
    """Whose they are, for sentences: "table 'points'", "'forest.laz'"."""
    crs: str | None = None
    """PROJJSON, or a code such as 'EPSG:25832'; None where it is not known."""
    doubt: str = ""
    """Why the CRS of the coordinates cannot be told, though that of some is known."""
