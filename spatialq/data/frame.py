"""How coordinates are to be read: what is known of their CRS, and from where."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """What is known of the coordinates that a function gets."""

    subject: str
    """Whose they are, for sentences: a table or file in quotes."""
    crs: str | None = None
    """PROJJSON, or a code such as 'EPSG:25832'; None where it is not known."""
    doubt: str = ""
    """Why their unit cannot be told, though the CRS of some is known."""
    conflict: str = ""
    """Why they cannot be used together."""
    remedy: str = ""
    """What reprojects them, if they are in degrees."""
    is_announced: bool = False
    """Whether the user has been warned of what is odd about them."""
