"""The server behind `spatialq view`: what the page and programs ask, see `docs/serve.md`."""

import json
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import duckdb
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from spatialq.errors import SpatialqError
from spatialq.serve.chosen import Chosen
from spatialq.serve.cloud_tiles import PREVIEW
from spatialq.serve.guard import Guard
from spatialq.serve.limits import QueryRefusedError
from spatialq.serve.pool import Answer, Cancellation, QueryFailedError
from spatialq.serve.queries import run, sentence, to_json

if TYPE_CHECKING:
    import pyarrow as pa

    from spatialq.serve.scene import Cloud, Scene
    from spatialq.serve.selection import Selection

T = TypeVar("T")

PAGE = Path(__file__).parent / "page"
BUNDLE = "app.js"
NO_PAGE = (
    "view: the page is not built in this checkout: make page builds it (it needs npm); everything "
    "else of this address works"
)
TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".txt": "text/plain; charset=utf-8",
    ".json": "application/json", ".glb": "model/gltf-binary", ".svg": "image/svg+xml",
}  # fmt: skip
INSIDE = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*")
"""Names of files in folders of tiles: no step upwards, nothing hidden."""
ARROW, JSON = "application/vnd.apache.arrow.stream", "application/json"
COLUMNS = 4
"""Threads that give columns to tiles."""
RESULTS = 16
"""Results that are kept for the tiles that ask for them."""
WAITING = 32
"""Queries that may wait; more are refused."""
TEXT = 1 << 20
"""Characters of a query at most."""


class Refusal(Exception):
    """An answer with an error status.

    Parameters
    ----------
    status : int
    reason : str
        One sentence.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


NOTHING = 404, "view: there is nothing here"


class Server:
    """Answers to what is asked of a scene.

    Parameters
    ----------
    scene : Scene
    page : Path
        Folder of the page.
    chosen : Chosen, optional
        Where the page and Python tell each other what is selected.
    """

    def __init__(self, scene: "Scene", page: Path = PAGE, chosen: Chosen | None = None) -> None:
        self._scene, self._page, self._chosen = scene, page, chosen
        self._results: OrderedDict[str, dict[int, Selection]] = OrderedDict()
        self._lock = threading.Lock()
        self._queries = anyio.CapacityLimiter(scene.pool.size)
        # of each query that runs or waits, what ends it
        self._give_up: set[Callable[[], None]] = set()
        self._is_ending = False
        # of many tiles that ask for a column, the first reads it and few wait in threads
        self._columns = anyio.CapacityLimiter(COLUMNS)

    def app(self, token: str, port: int) -> Guard:
        """Give the application, which answers to pages of its own with the token."""
        cloud = "/clouds/{cloud:int}"
        routes = [
            Route("/health", self.health),
            Route("/scene.json", self.scene),
            Route("/elements.json", self.elements),
            Route("/planes.json", self.planes),
            Route(f"{cloud}/ids/{{node}}", self.ids),
            Route(f"{cloud}/{{path:path}}", self.cloud_file),
            Route("/models/{model:int}/{path:path}", self.model_file),
            Route("/query", self.query, methods=["POST"]),
            Route("/query/{result}/clouds/{cloud:int}/{node}", self.values),
            Route("/column/{cloud:int}/{place:int}/{node}", self.column),
            Route("/row/points/{cloud:int}/{key:int}", self.point),
            Route("/row/elements/{key}", self.element),
            Route("/row/planes/{key:int}", self.plane),
            Route("/sql", self.sql, methods=["POST"]),
            Route("/views", self.views, methods=["GET", "POST"]),
            Route("/views.bcf", self.bcf, methods=["GET", "POST"]),
            Route("/{path:path}", self.page),
        ]
        if self._chosen is not None:
            routes.insert(0, Route("/chosen", self.chosen, methods=["GET", "POST"]))
        handlers: dict[Any, Any] = {
            Refusal: _refused,
            404: _nothing,
            405: _nothing,
            Exception: _failed,
        }
        inner = Starlette(routes=routes, exception_handlers=handlers)
        return Guard(inner, token, port)

    async def health(self, _: Request) -> Response:
        """Say that the server is there."""
        return JSONResponse({"ok": True})

    async def scene(self, _: Request) -> Response:
        """Give `scene.json`."""
        said = await to_thread.run_sync(self._scene.said)
        return _json({**said, "is_shared": self._chosen is not None})

    async def elements(self, _: Request) -> Response:
        """Give the rows of all elements."""
        return _json(self._scene.elements)

    async def planes(self, _: Request) -> Response:
        """Give the rows of planes."""
        return _json(await to_thread.run_sync(lambda: self._scene.planes))

    async def page(self, request: Request) -> Response:
        """Give a file of the page."""
        name = request.path_params["path"] or "index.html"
        if name == "index.html" and not (self._page / BUNDLE).is_file():
            return Response(f"{NO_PAGE}\n", 503, media_type="text/plain")
        return _file(self._page, name)

    async def cloud_file(self, request: Request) -> Response:
        """Give a file of the tiles of a cloud."""
        cloud, path = self._cloud(request), request.path_params["path"]
        tiles = cloud.tiles
        if path.startswith(f"{PREVIEW}/"):
            tiles, path = cloud.preview, path.removeprefix(f"{PREVIEW}/")
        if tiles is None or not path.endswith((".json", ".glb")):
            raise Refusal(*NOTHING)
        return _file(tiles.folder, path)

    async def model_file(self, request: Request) -> Response:
        """Give a file of the tiles of a model."""
        number = request.path_params["model"]
        if number >= len(self._scene.models):
            raise Refusal(*NOTHING)
        return _file(self._scene.models[number].folder, request.path_params["path"])

    async def ids(self, request: Request) -> Response:
        """Give the point_ids of a tile."""
        cloud, node = self._cloud(request), request.path_params["node"]
        ids = await to_thread.run_sync(lambda: _ids(cloud, node).astype("<i8").tobytes())
        return _binary(ids)

    async def query(self, request: Request) -> Response:
        """Run a query of the box, and keep what it selects."""
        given = await _body(request)
        text = _text(given, "text")
        language = given.get("language") or "sql"
        colour = given.get("colour")
        if language not in ("sql", "ql4bim"):
            raise Refusal(400, f"view: language must be 'sql' or 'ql4bim', got {language!r}")
        if colour is not None and not isinstance(colour, str):
            raise Refusal(400, f"view: colour must be the name of a column, got {colour!r}")
        key = secrets.token_urlsafe(9)
        answer = await self._answer(
            request, text, given, "page", id=key, language=language, colour=colour
        )
        self._keep(key, answer.points)
        return Response(answer.data, media_type=JSON)

    def _keep(self, key: str, points: "dict[int, Selection]") -> None:
        """Keep what a result selects, for the tiles that ask for it."""
        with self._lock:
            self._results[key] = points
            while len(self._results) > RESULTS:
                self._results.popitem(last=False)

    async def chosen(self, request: Request) -> Response:
        """Take what is selected in the page, or say what Python selects."""
        assert self._chosen is not None
        if request.method == "POST":
            self._chosen.said = await _body(request)
        return _json({"number": self._chosen.number, "result": self._chosen.result})

    def select(self, rows: "pa.Table") -> None:
        """Have the page select rows, as it does with those of a query.

        Raises
        ------
        QueryRefusedError
            If their ids are none.
        """
        assert self._chosen is not None
        with self._scene.opened.con.cursor() as con:
            con.register("selected", rows)
            key = secrets.token_urlsafe(9)
            found = run(con, key, "FROM selected", self._scene.targets, self._scene.limits)
        self._keep(key, found.points)
        self._chosen.show(found.answer)

    async def values(self, request: Request) -> Response:
        """Give the bits or bytes of a result for the points of a tile."""
        cloud, params = self._cloud(request), request.path_params
        with self._lock:
            result = self._results.get(params["result"])
        if result is None:
            raise Refusal(410, "view: this result is not kept any more; run the query again")

        if cloud.number not in result:
            raise Refusal(404, "view: the result selects no points of this cloud")
        selection = result[cloud.number]
        return _binary(await to_thread.run_sync(lambda: selection.of(_ids(cloud, params["node"]))))

    async def column(self, request: Request) -> Response:
        """Give a column for the points of a tile."""
        cloud, params = self._cloud(request), request.path_params
        place = params["place"]
        if place >= len(cloud.columns):
            raise Refusal(404, f"view: there is no column {place} to colour by")

        def found() -> bytes:
            ids = _ids(cloud, params["node"])
            with self._scene.opened.con.cursor() as con:
                return cloud.values(con, place, ids)

        return _binary(await to_thread.run_sync(found, limiter=self._columns))

    async def point(self, request: Request) -> Response:
        """Give the row of a point."""
        return await self._row(request, "points", self._cloud(request))

    async def element(self, request: Request) -> Response:
        """Give the row of an element."""
        return await self._row(request, "elements")

    async def plane(self, request: Request) -> Response:
        """Give the row of a plane."""
        return await self._row(request, "planes")

    async def _row(self, request: Request, kind: str, cloud: "Cloud | None" = None) -> Response:
        key = request.path_params["key"]
        with self._scene.opened.con.cursor() as con:
            found = await self._asked(
                request, lambda: self._scene.row(con, kind, key, cloud), con.interrupt
            )
        if found is None:
            raise Refusal(404, f"view: there is no row {key!r} of {kind}")
        return _json(found)

    async def sql(self, request: Request) -> Response:
        """Run a query of a program: all rows, in Arrow, or as many as the box shows in JSON."""
        given = await _body(request)
        text = _text(given, "sql")
        if ARROW in request.headers.get("accept", ""):
            answer = await self._answer(request, text, given, "arrow")
            return Response(answer.data, media_type=ARROW)
        return Response((await self._answer(request, text, given, "rows")).data, media_type=JSON)

    async def views(self, request: Request) -> Response:
        """Give the saved views, or save one."""
        if request.method == "POST":
            try:
                given = await _body(request)
                await to_thread.run_sync(lambda: self._scene.views.add(given))
            except (ValueError, TypeError) as error:
                raise Refusal(400, str(error)) from None
        return _json(self._scene.views.said())

    async def bcf(self, request: Request) -> Response:
        """Give the saved views as a BCF archive, or take those of one."""
        if request.method == "POST":
            data = await _bytes(request)
            try:
                await to_thread.run_sync(lambda: self._scene.views.read_bcf(data))
            except (SpatialqError, ValueError) as error:
                raise Refusal(400, str(error)) from None
            return _json(self._scene.views.said())
        archive = await to_thread.run_sync(self._scene.views.bcf)
        named = {"content-disposition": 'attachment; filename="views.bcf"'}
        return Response(archive, media_type="application/octet-stream", headers=named)

    async def _answer(
        self, request: Request, text: str, given: dict[str, Any], form: str, **more: Any
    ) -> Answer:
        """Have a query answered by a process of its own."""
        parameters, cancellation = _parameters(given), Cancellation()

        def ask() -> Answer:
            return self._scene.pool.ask(text, parameters, form, cancellation=cancellation, **more)

        return await self._asked(request, ask, cancellation.set)

    async def _asked(self, request: Request, work: Callable[[], T], stop: Callable[[], None]) -> T:
        """Wait for an answer in a thread; few may wait, so that tiles come meanwhile.

        Where the client goes, `work` is not begun any more, or `stop` is called to end it; so it
        is where the server ends.
        """
        ending = Refusal(503, "view: the server is ending")
        if self._is_ending:
            raise ending
        if len(self._give_up) >= self._scene.pool.size + WAITING:
            raise Refusal(503, "view: too many queries are waiting; try again in a moment")
        answers: list[T] = []
        refusal = Refusal(499, "view: the client has gone")
        async with anyio.create_task_group() as group:

            def give_up() -> None:
                stop()
                group.cancel_scope.cancel()

            async def leave() -> None:
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                give_up()

            self._give_up.add(give_up)
            try:
                group.start_soon(leave)
                answers.append(await to_thread.run_sync(work, limiter=self._queries))
            except (QueryRefusedError, duckdb.Error) as error:
                refusal = Refusal(400, sentence(error))
            except QueryFailedError as error:
                refusal = Refusal(500, str(error))
            finally:
                self._give_up.discard(give_up)
            group.cancel_scope.cancel()
        if answers:
            return answers[0]
        raise ending if self._is_ending else refusal

    def end(self) -> None:
        """End all queries, each of which is answered by a refusal; called in the event loop."""
        self._is_ending = True
        for give_up in [*self._give_up]:
            give_up()

    def _cloud(self, request: Request) -> "Cloud":
        cloud = self._scene.cloud(request.path_params["cloud"])
        if cloud is None:
            raise Refusal(404, f"view: there is no cloud {request.path_params['cloud']}")
        return cloud


def _ids(cloud: "Cloud", node: str) -> Any:
    ids = cloud.ids_of(node)
    if ids is None:
        raise Refusal(404, f"view: there is no tile {node!r}")
    return ids


def _file(folder: Path, name: str) -> Response:
    """Give a file below a folder, wherever links lead."""
    path = folder / name
    kind = TYPES.get(path.suffix)
    if INSIDE.fullmatch(name) is None or kind is None:
        raise Refusal(*NOTHING)
    if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
        raise Refusal(*NOTHING)
    return FileResponse(path, media_type=kind)


def _json(value: Any) -> Response:
    return Response(to_json(value), media_type=JSON)


def _binary(data: bytes) -> Response:
    return Response(data, media_type="application/octet-stream")


async def _bytes(request: Request) -> bytes:
    try:
        return await request.body()
    except ClientDisconnect:
        raise Refusal(413, "view: the request is too long") from None


async def _body(request: Request) -> dict[str, Any]:
    """Read an object in JSON."""
    try:
        given = json.loads(await _bytes(request))
    except (ValueError, RecursionError):
        raise Refusal(400, "view: the request must be JSON") from None
    if not isinstance(given, dict):
        raise Refusal(400, "view: the request must be an object in JSON")
    return given


def _text(given: dict[str, Any], name: str) -> str:
    text = given.get(name)
    if not isinstance(text, str) or not text.strip():
        raise Refusal(400, f"view: {name} must be a query, got {text!r}")
    if len(text) > TEXT:
        raise Refusal(413, f"view: {name} may have {TEXT} characters, got {len(text)}")
    return text


def _parameters(given: dict[str, Any]) -> Any:
    found = given.get("parameters")
    if not (found is None or isinstance(found, list | dict)):
        raise Refusal(400, f"view: parameters must be a list or an object, got {found!r}")
    return found or None


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return JSONResponse({"error": str(error)}, error.status)


def _nothing(_: Request, error: Any) -> Response:
    return JSONResponse({"error": NOTHING[1]}, error.status_code)


def _failed(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": f"view: {type(error).__name__}: {sentence(error)}"}, 500)
