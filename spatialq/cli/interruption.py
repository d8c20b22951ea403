"""Ctrl-C while a query runs."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

AGAIN = 0.2
"""Seconds after which a query is interrupted again: the first time it may not have begun."""


@contextmanager
def interruptible(con: "duckdb.DuckDBPyConnection") -> Iterator[None]:
    """Interrupt the query of a connection when SIGINT or SIGTERM comes.

    Python runs a signal's handler in the main thread, and DuckDB, which is busy there, does not
    always let it. A byte that comes through a socket tells another thread at once. The handler
    then runs when the query has ended.

    Raises
    ------
    KeyboardInterrupt
        If the query failed since it was interrupted.
    """
    receiver, sender = socket.socketpair()
    sender.settimeout(0)
    signalled, ended = Event(), Event()

    def watch() -> None:
        while number := receiver.recv(1):
            if number[0] in (signal.SIGINT, signal.SIGTERM):
                signalled.set()
                while not ended.is_set():
                    con.interrupt()
                    ended.wait(AGAIN)

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    failure: Exception | None = None
    try:
        yield
    except Exception as error:
        failure = error
    finally:
        signal.set_wakeup_fd(before)
        ended.set()
        sender.close()
        watcher.join()
        receiver.close()
    if failure is not None:
        if signalled.is_set():  # an interrupted query fails with errors of many kinds
            raise KeyboardInterrupt from failure
        raise failure
