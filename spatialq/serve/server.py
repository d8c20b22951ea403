"""Runs the server of a scene until it is stopped."""

import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from spatialq.serve.app import BUNDLE, NO_PAGE, PAGE, Server

if TYPE_CHECKING:
    from spatialq.serve.scene import Scene

HOST = "127.0.0.1"
BACKLOG = 128
TOKEN_BYTES = 24


class Listening:
    """A server of a scene that listens on this machine.

    Parameters
    ----------
    answers : Server
    port : int
        0 for any that is free.

    Attributes
    ----------
    address : str
        Of the page, with a random token.
    guard : Guard
        Who may ask.

    Raises
    ------
    ValueError
        If the port is in use.
    """

    def __init__(self, answers: Server, port: int = 0) -> None:
        import uvicorn

        token = secrets.token_urlsafe(TOKEN_BYTES)
        try:
            self._socket = socket.create_server((HOST, port), backlog=BACKLOG)
        except OSError as error:
            message = f"view: port must be free, got {port}: {error.strerror}"
            raise ValueError(message) from None
        at = self._socket.getsockname()[1]
        self.address = f"http://{HOST}:{at}/{token}/"
        self.guard = answers.app(token, at)
        config = uvicorn.Config(
            self.guard, log_level="warning", access_log=False, server_header=False, lifespan="off",
            timeout_graceful_shutdown=1,
        )  # fmt: skip

        class Ending(uvicorn.Server):
            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                answers.end()
                await super().shutdown(sockets)

        self._server = Ending(config)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Answer until Ctrl-C."""
        self._server.run(sockets=[self._socket])

    def start(self) -> None:
        """Answer in a thread until `close`."""
        self._thread = threading.Thread(target=self.run, name="spatialq-view", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
        self._socket.close()


def serve(
    scene: "Scene", port: int, say: Callable[[str], object], *, opens_browser: bool = False
) -> None:
    """Serve a scene to this machine, and make its tiles meanwhile.

    Parameters
    ----------
    scene : Scene
    port : int
        0 for any that is free.
    say : callable
        Told the address.
    opens_browser : bool

    Raises
    ------
    ValueError
        If the port is in use.
    """
    with closing(Listening(Server(scene), port)) as listening:
        threading.Thread(target=scene.build, daemon=True).start()
        if not (PAGE / BUNDLE).is_file():
            say(NO_PAGE)
        say(f"{listening.address} (Ctrl-C ends it)")
        if opens_browser and (PAGE / BUNDLE).is_file():
            import webbrowser

            webbrowser.open(listening.address)
        listening.run()
