"""The CRS that a user gives, for sources that name one or none."""

from dataclasses import dataclass

from spatialq.io import crs as crs_text


@dataclass(frozen=True)
class GivenCrs:
    """The arguments `crs` and `override_crs` of a command."""

    command: str
    crs: str | None
    """PROJJSON."""
    is_override: bool

    def for_source(self, source: object, own: str | None) -> str | None:
        """Give the CRS of a source that names its own one or none."""
        named = [(source, own)]
        return crs_text.given_or_own(self.command, named, self.crs, override=self.is_override)
