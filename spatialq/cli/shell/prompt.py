"""The terminal of the shell: a prompt with history and completion."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.shortcuts import CompleteStyle

from spatialq.cli.rendering import note
from spatialq.cli.shell.completion import suggest
from spatialq.cli.shell.session import Session
from spatialq.cli.shell.text import is_complete
from spatialq.runtime import user_cache

PROMPT, MORE = "spatialq> ", "     ...> "
HISTORY = "shell_history"


def run_in_terminal(session: Session, **terminal: Any) -> None:
    """Read statements from a terminal until Ctrl-D or `.quit`.

    Parameters
    ----------
    session : Session
    **terminal
        `input` and `output` of prompt_toolkit, by default the process' own.
    """
    prompt: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=MORE,
        history=_history(),
        completer=_Completer(session),
        complete_while_typing=False,
        complete_style=CompleteStyle.READLINE_LIKE,
        key_bindings=_bindings(session),
        **terminal,
    )
    with _interruptible():
        while True:
            try:
                text = prompt.prompt()
            except KeyboardInterrupt:  # Ctrl-C drops what was typed
                continue
            except EOFError:
                return
            try:
                if text.strip() and not session.run(text):
                    return
            except KeyboardInterrupt:
                note("interrupted")


class _Completer(Completer):
    """Shows what `suggest` finds."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        del complete_event
        for each in suggest(document.text_before_cursor, self._session.names):
            yield Completion(each.text, each.start, display_meta=each.kind)


def _bindings(session: Session) -> KeyBindings:
    """Enter runs what is complete, and begins a new line where it is not."""
    bindings = KeyBindings()

    @Condition
    def is_whole() -> bool:
        from prompt_toolkit.application import get_app

        buffer = get_app().current_buffer
        is_end = not buffer.document.text_after_cursor.strip()
        return is_end and is_complete(buffer.text, session.variables)

    @bindings.add("enter", filter=is_whole)
    def run(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def _history() -> History:
    folder = user_cache.folder()
    return InMemoryHistory() if folder is None else FileHistory(str(folder / HISTORY))


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C stop what runs, not the process."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
