"""Who may ask the server: a page of its own, on this machine, that knows the token."""

import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from starlette.responses import JSONResponse

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; "
    "img-src 'self' data: blob:; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors "
)
"""WebAssembly is the decoder of compressed tiles. Then come the origins that may show the page."""
NOBODY = "'none'"
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9.:\[\]_-]+")
HEADERS = {
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",  # the address has the token
    "cache-control": "no-store",
}
MOST_BODY = 32 << 20
"""Bytes of what is sent to the server, such as a BCF archive."""
BEARER = "bearer "
LOCAL = ("127.0.0.1", "localhost")


class Guard:
    """Lets through what comes from a page of the server's own, and takes the token from the path.

    Parameters
    ----------
    app : ASGI application
        Sees paths without the token.
    token : str
    port : int
    """

    def __init__(self, app: Application, token: str, port: int) -> None:
        self._app, self._token = app, token.encode()
        self._hosts = {f"{name}:{port}" for name in LOCAL}
        self._embedders: list[str] = []

    def permit(self, origins: Iterable[str]) -> None:
        """Let pages of other origins, such as a notebook, show the page in a frame of theirs.

        Raises
        ------
        ValueError
            If one is no origin.
        """
        for each in origins:
            if ORIGIN.fullmatch(each) is None:
                message = f"view: an origin must be such as http://localhost:8888, got {each!r}"
                raise ValueError(message)
            if each not in self._embedders:
                self._embedders.append(each)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                policy = POLICY + (" ".join(self._embedders) or NOBODY)
                headers = {"content-security-policy": policy, **HEADERS}
                own = {name.encode() for name in headers}
                kept = [each for each in message["headers"] if each[0].lower() not in own]
                added = [(name.encode(), value.encode()) for name, value in headers.items()]
                message = {**message, "headers": [*kept, *added]}
            await send(message)

        refused = self._refused(scope)
        if refused is not None:
            status, reason = refused
            await JSONResponse({"error": reason}, status)(scope, receive, with_headers)
            return
        _, _, rest = scope["path"].removeprefix("/").partition("/")
        path = "/sql" if self._has_bearer(scope) else f"/{rest}"
        inner = {**scope, "path": path, "raw_path": path.encode(), "root_path": ""}
        await self._app(inner, _limited(receive), with_headers)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """Say why a request is refused, and by which status."""
        headers = {name.decode("latin-1").lower(): value for name, value in scope["headers"]}
        named = [value for name, value in scope["headers"] if name.lower() == b"host"]
        host = named[0].decode("latin-1").lower() if len(named) == 1 else ""
        if host not in self._hosts:
            return 421, "view: this server answers to 127.0.0.1 and localhost alone"
        origin = headers.get("origin", b"").decode("latin-1").lower()
        site = headers.get("sec-fetch-site", b"").decode("latin-1").lower()
        is_own = site in ("", "none", "same-origin") or self._is_frame(scope, headers)
        if (origin and origin != f"http://{host}") or not is_own:
            return 403, "view: pages of other origins may not ask this server"
        given = scope["path"].removeprefix("/").partition("/")[0].encode()
        if not (secrets.compare_digest(given, self._token) or self._has_bearer(scope)):
            return 404, "view: there is nothing here; the address has a token, which this one lacks"
        length = headers.get("content-length", b"0")
        if not length.isdigit() or int(length) > MOST_BODY:
            return 413, f"view: a request may have {MOST_BODY >> 20} MiB at most"
        return None

    def _is_frame(self, scope: Scope, headers: dict[str, bytes]) -> bool:
        """Whether the page is asked for, for a frame; the browser then asks the policy of whom."""
        is_page = scope["method"] == "GET" and scope["path"].count("/") == 2
        is_frame = headers.get("sec-fetch-dest") == b"iframe" and scope["path"].endswith("/")
        return bool(self._embedders) and is_page and is_frame

    def _has_bearer(self, scope: Scope) -> bool:
        """Whether a program asks `/sql` with the token in a header."""
        if scope["path"] != "/sql":
            return False
        for name, value in scope["headers"]:
            if name.lower() == b"authorization" and value.lower().startswith(BEARER.encode()):
                return secrets.compare_digest(value[len(BEARER) :].strip(), self._token)
        return False


def _limited(receive: Receive) -> Receive:
    """Receive a body that is no longer than it may be, whatever its header said."""
    received = 0

    async def limited() -> MutableMapping[str, Any]:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > MOST_BODY:
            return {"type": "http.disconnect"}
        return message

    return limited
