"""Ctrl-C while a query runs."""

import signal
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, Thread, current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING

from spatialq.runtime.progress import cancel_running

if TYPE_CHECKING:
    import duckdb

AGAIN = 0.2
"""Seconds after which a query is interrupted again: the first time it may not have begun."""


SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible(con: "duckdb.DuckDBPyConnection", *, is_deferred: bool = True) -> Iterator[None]:
    """Interrupt the query of a connection when SIGINT or SIGTERM comes.

    Python runs a signal's handler in the main thread, and DuckDB, which is busy there, does not
    always let it. A byte that comes through a socket tells another thread at once.

    The KeyboardInterrupt of the handler is raised when the block has ended: within DuckDB's code it
    may leave a thread behind, which aborts the process when Python ends. That of a second signal
    does not wait. Where the block does much else than queries, it is raised at once.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    is_deferred : bool
        Whether it is raised at the end of the block.

    Raises
    ------
    KeyboardInterrupt
        If a signal came, whose handler raised it.
    """
    receiver, sender = socket.socketpair()
    sender.settimeout(0)
    ended = Event()

    def watch() -> None:
        while number := receiver.recv(1):
            if number[0] in SIGNALS:
                while not ended.is_set():
                    con.interrupt()
                    cancel_running()
                    ended.wait(AGAIN)

    watcher = Thread(target=watch, daemon=True)
    failure: Exception | None = None
    keeping: AbstractContextManager[list[KeyboardInterrupt]]
    keeping = _deferred() if is_deferred else nullcontext([])
    with keeping as interruptions:
        watcher.start()
        before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        try:
            if interruptions:  # too early for the other thread to be told
                raise interruptions[0]
            yield
        except Exception as error:
            failure = error
        finally:
            signal.set_wakeup_fd(before)
            ended.set()
            sender.close()
            watcher.join()
            receiver.close()
    if interruptions:  # an interrupted query fails with errors of many kinds
        raise interruptions[0] from failure
    if failure is not None:
        raise failure


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let a signal wait for what must not be interrupted, such as calls of DuckDB into Python."""
    if current_thread() is not main_thread():  # which handles no signals
        yield
        return
    with _deferred() as interruptions:
        yield
    if interruptions:
        raise interruptions[0]


@contextmanager
def _deferred() -> Iterator[list[KeyboardInterrupt]]:
    """Keep the first KeyboardInterrupt of the signals' handlers, instead of raising it."""
    kept: list[KeyboardInterrupt] = []
    handlers = {number: signal.getsignal(number) for number in SIGNALS}

    def keep(number: int, frame: FrameType | None) -> None:
        handler = handlers[signal.Signals(number)]
        assert callable(handler)
        try:
            handler(number, frame)
        except KeyboardInterrupt as interruption:
            if kept:
                raise
            kept.append(interruption)

    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, keep)
    try:
        yield kept
    finally:
        for number, handler in handlers.items():
            if signal.getsignal(number) is keep:  # the handler may have set another one
                signal.signal(number, handler)
