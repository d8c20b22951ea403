"""Runs the server of a scene until it is stopped."""

import secrets
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spatialq.serve.app import BUNDLE, NO_PAGE, PAGE, Server

if TYPE_CHECKING:
    from spatialq.serve.scene import Scene

HOST = "127.0.0.1"
BACKLOG = 128
TOKEN_BYTES = 24


def serve(
    scene: "Scene",
    port: int,
    say: Callable[[str], object],
    *,
    opens_browser: bool = False,
    token: str | None = None,
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
    token : str, optional
        By default a random one.

    Raises
    ------
    ValueError
        If the port is in use.
    """
    import uvicorn

    token = token or secrets.token_urlsafe(TOKEN_BYTES)
    try:
        listening = socket.create_server((HOST, port), backlog=BACKLOG)
    except OSError as error:
        message = f"view: port must be free, got {port}: {error.strerror}"
        raise ValueError(message) from None
    with listening:
        at = listening.getsockname()[1]
        app: Any = Server(scene).app(token, at)
        address = f"http://{HOST}:{at}/{token}/"
        threading.Thread(target=scene.build, daemon=True).start()
        if not (PAGE / BUNDLE).is_file():
            say(NO_PAGE)
        say(f"{address} (Ctrl-C ends it)")
        if opens_browser and (PAGE / BUNDLE).is_file():
            import webbrowser

            webbrowser.open(address)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, lifespan="off",
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listening])
