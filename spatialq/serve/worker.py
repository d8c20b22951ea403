"""The process in which queries of the box run: requests on its standard input, answers as frames.

A query may allocate what DuckDB does not count, run for ever, or crash: it takes this process with
it (`python -m spatialq.serve.worker`), and the server starts another one. The first line is the
`Box`; each other line is a request. Answered are a frame ``J`` of JSON, then a frame ``P`` for
each part that it announces: the answer, and the arrays of what it selects.
"""

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from spatialq.errors import SpatialqError
from spatialq.io.ifc.mesh_stream import private_stdout, send
from spatialq.runtime import budget
from spatialq.runtime.memory import private
from spatialq.runtime.threads import n_threads
from spatialq.serve import scripts
from spatialq.serve.box import Box
from spatialq.serve.queries import arrow, require_short, run, sentence, to_json

if TYPE_CHECKING:
    import duckdb

BESIDE = 2
"""The process may grow by so many times what DuckDB may take: there are also results, which grow
into arrays of Arrow and NumPy, and what kernels allocate."""
STACK = 8 << 20
"""Bytes of the stack of a thread, which kernels begin when they are first called."""
OOM_SCORE = Path("/proc/self/oom_score_adj")

Buffer = Any
"""What has the buffer protocol: bytes, an array, a buffer of Arrow."""


def limit_memory(memory: int) -> None:
    """Let allocations fail beyond what this process has now and a query may take.

    Other systems than Linux have no such limit that holds: there, DuckDB's own is all.
    """
    if sys.platform == "linux":
        import resource

        most = private() + BESIDE * memory + n_threads() * STACK
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # where the machine itself has no memory left, this one goes first
            OOM_SCORE.write_text("1000", encoding="ascii")


def answer(
    con: "duckdb.DuckDBPyConnection", box: Box, request: dict[str, Any]
) -> tuple[dict[str, Any], list[Buffer]]:
    """Answer a request.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    box : Box
    request : dict
        `text`, `parameters`, and `form`: 'arrow' of all rows; 'rows' of as many as the box shows;
        'page' of these and what they select, with `id`, `language` and `colour`.

    Returns
    -------
    dict
        `selections`: a dict of the cloud, the kind, and whether there are ids, for each.
    list
        The answer; then values, and ids where there are some, of each selection.

    Raises
    ------
    QueryRefusedError, duckdb.Error, SpatialqError, ValueError, OSError, MemoryError
    """
    text, parameters, form = request["text"], request["parameters"], request["form"]
    if form == "arrow":
        return {"selections": []}, [arrow(con, text, parameters=parameters)]
    if form == "rows":
        found = run(con, "", text, [], box.limits, parameters=parameters).answer
        wanted = ("columns", "rows", "count", "truncated", "seconds")
        return {"selections": []}, [to_json({name: found[name] for name in wanted})]
    if request["language"] == "ql4bim":
        text = scripts.statement(con, text, box.models)
    result = run(
        con, request["id"], text, box.targets, box.limits,
        parameters=parameters, colour=request["colour"],
    )  # fmt: skip
    data = to_json(result.answer)
    require_short(len(data))
    said: list[dict[str, Any]] = []
    parts: list[Buffer] = [data]
    for cloud, each in result.points.items():
        said.append({"cloud": cloud, "kind": each.kind, "has_ids": each.ids is not None})
        parts += [each.values.data, *([] if each.ids is None else [each.ids.data])]
    return {"selections": said}, parts


def main() -> None:
    """Answer until nobody asks any more."""
    import duckdb

    # Arrow's own allocator would have a gigabyte ahead, which the limit would not know of
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    out = private_stdout()
    requests: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    box = Box.of(requests.get())
    os.environ[budget.MEMORY] = f"{box.limits.memory}B"  # of what kernels plan
    con = box.connect()
    # what queries and kernels import is there before time and memory are limited
    import numba  # noqa: F401

    run(con, "", "SELECT 1 AS point_id, '' AS global_id, 1 AS value", box.targets, box.limits)
    limit_memory(box.limits.memory)
    send(out, b"J", b"{}")
    while True:
        request = requests.get()
        parts: list[Buffer] = []
        try:
            said, parts = answer(con, box, request)
        except (duckdb.OutOfMemoryException, MemoryError):
            said = {"error": str(box.limits.too_much), "status": 400, "is_spent": True}
        except (duckdb.Error, SpatialqError, ValueError, OSError) as error:
            said = {"error": sentence(error), "status": 400}
        except Exception as error:
            said = {"error": f"view: {type(error).__name__}: {sentence(error)}", "status": 500}
        send(out, b"J", to_json({**said, "parts": len(parts)}))
        for part in parts:
            send(out, b"P", memoryview(part).cast("B"))
        del parts, said


def _read(requests: "SimpleQueue[dict[str, Any]]") -> None:
    """Take requests; where the server is gone, end in the middle of a query, too."""
    for line in sys.stdin.buffer:
        requests.put(json.loads(line))
    os._exit(0)


if __name__ == "__main__":
    main()
