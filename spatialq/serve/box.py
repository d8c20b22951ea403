"""What a query of the box sees: the databases, read-only, on a connection that opens nothing else.

The server has such a connection for rows and tiles, and each process of `spatialq.serve.pool`
one of its own for queries.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.functions.sql_text import literal
from spatialq.serve.limits import Limits
from spatialq.serve.queries import Target

if TYPE_CHECKING:
    import duckdb

FUNCTIONS = "memory"
"""The database that has our macros."""


@dataclass(frozen=True)
class Box:
    """What a process needs to answer queries.

    Parameters
    ----------
    databases : mapping of str to str
        Names and paths, in the order in which tables are looked for.
    models : sequence of str
        Files of models, which queries and scripts of QL4BIM may read.
    limits : Limits
    targets : sequence of Target
        What rows select.
    """

    databases: Mapping[str, str]
    models: Sequence[str]
    limits: Limits
    targets: Sequence[Target] = ()

    def said(self) -> dict[str, Any]:
        """Say it as JSON has it."""
        return asdict(self)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Box":
        """Give what `said` said."""
        return cls(
            said["databases"],
            said["models"],
            Limits(**said["limits"]),
            [Target(**each) for each in said["targets"]],
        )

    def connect(self) -> "duckdb.DuckDBPyConnection":
        """Open the databases on a new connection that can open nothing else."""
        from spatialq.database.connection import connect_quietly

        con = connect_quietly()
        for name, path in self.databases.items():
            attach(con, name, path)
        self.lock(con)
        return con

    def lock(self, con: "duckdb.DuckDBPyConnection") -> None:
        """Let a connection find the tables, and lock what it may do."""
        # QL4BIM reads the models themselves; they are files that were named
        paths = [os.path.realpath(path) for path in self.models if Path(path).is_file()]
        search = ",".join(f"{name}.main" for name in (*self.databases, FUNCTIONS))
        con.execute(f"SET search_path = '{search}'")
        con.execute("SET temp_directory = ''")  # its folder would be open to readers and writers
        con.execute(f"SET memory_limit = '{self.limits.memory >> 20}MiB'")
        con.execute(f"SET allowed_paths = [{', '.join(map(literal, paths))}]")
        con.execute("SET enable_external_access = false")
        con.execute("SET lock_configuration = true")


def attach(con: "duckdb.DuckDBPyConnection", name: str, path: object) -> None:
    """Attach a database, of which many processes may read."""
    con.execute(f"ATTACH {literal(str(path))} AS {name} (READ_ONLY)")
