"""`spatialq view` as a person starts it: a process, its address, and its end."""

import json
import queue
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

from spatialq.serve.app import WAITING
from spatialq.serve.pool import AT_ONCE

pytestmark = pytest.mark.slow


def ask(address, data=None, headers=None):
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(address, body, headers or {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def start(house, *more):
    command = [sys.executable, "-m", "spatialq", "view", str(house / "house.laz"), "--no-browser"]
    process = subprocess.Popen([*command, *more], stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/([\w-]+)/", line):
            return process, found[0], found[1], found[2]
    pytest.fail("the server said no address")


def end(process, how=signal.SIGINT, said=None):
    process.send_signal(how)
    text = process.stderr.read()
    process.stderr.close()
    assert said in (None, text)
    return process.wait(60)


def test_it_serves_until_ctrl_c(house, in_cache):
    process, address, port, token = start(house)
    try:
        assert json.loads(ask(f"{address}health")) == {"ok": True}
        cloud = {"state": "building"}
        while cloud["state"] == "building":
            (cloud,) = json.loads(ask(f"{address}scene.json"))["clouds"]
        assert cloud["state"] == "ready"
        assert ask(f"{address}clouds/0/tiles/r.glb").startswith(b"glTF")
        bearer = {"Authorization": f"Bearer {token}"}
        rows = json.loads(
            ask(f"http://127.0.0.1:{port}/sql", {"sql": "SELECT count(*) FROM points"}, bearer)
        )["rows"]
        assert rows == [[cloud["points"]]]
        with pytest.raises(urllib.error.HTTPError, match="421"):
            ask(f"{address}health", headers={"Host": "evil.com"})
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask(f"http://127.0.0.1:{port}/health")
    finally:
        status = end(process)
    assert status in (0, 130)


def test_ctrl_c_ends_the_queries_that_run_and_wait(house, in_cache):
    process, _, port, token = start(house)
    bearer = {"Authorization": f"Bearer {token}"}
    answers = queue.Queue()

    def count():
        try:
            text = "SELECT count(*) FROM range(1_000_000_000_000)"
            ask(f"http://127.0.0.1:{port}/sql", {"sql": text}, bearer)
        except urllib.error.HTTPError as error:
            answers.put((error.code, json.loads(error.read())["error"]))

    threads = [threading.Thread(target=count) for _ in range(AT_ONCE + WAITING + 1)]
    for each in threads:
        each.start()
    try:
        refused = answers.get(timeout=60)  # all others are at the server by then
    finally:
        status = end(process, said="interrupted: nothing was half written\n")
    for each in threads:
        each.join(60)
    assert status == 130
    assert refused == (503, "view: too many queries are waiting; try again in a moment")
    ended = [answers.get_nowait() for _ in range(AT_ONCE + WAITING)]
    assert set(ended) == {(503, "view: the server is ending")}


def test_views_survive_a_server_that_is_killed(house, in_cache, tmp_path):
    camera = {"eye": [1.0, 2.0, 3.0], "target": [4.0, 6.0, 3.0], "up": [0, 0, 1], "fov": 50.0}
    view = {"title": "The door", "components": [], "query": "FROM points", "camera": camera}
    more = ("--views", str(tmp_path / "views.bcf"))
    for k in range(3):
        process, address, *_ = start(house, *more)
        try:
            kept = json.loads(ask(f"{address}views"))
            assert [each["title"] for each in kept] == ["The door"] * k
            ask(f"{address}views", view)
        finally:
            end(process, signal.SIGKILL)


def test_what_cannot_be_written_is_said_before_anything_is_read(tmp_path):
    for option, path in (("--export", "no/folder"), ("--views", "no/views.bcf")):
        done = subprocess.run(
            [sys.executable, "-m", "spatialq", "view", "nothing.laz", option, path],
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr == f"error: output: '{path}': there is no folder '{tmp_path / 'no'}'\n"
        assert list(tmp_path.iterdir()) == []


def test_what_a_killed_server_left_goes_when_the_next_one_starts(
    house, in_cache, tmp_path, monkeypatch
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process, *_ = start(house)
    end(process, signal.SIGKILL)
    left = set(tmp_path.glob("spatialq_*"))
    assert left
    process, *_ = start(house)
    try:
        assert not [each for each in left if each.exists()]
    finally:
        end(process)
    assert list(tmp_path.glob("spatialq_*")) == []


def test_it_starts_again_where_it_was_killed_with_another_token(house, in_cache):
    process, first, port, _ = start(house)
    end(process, signal.SIGKILL)
    process, second, again, _ = start(house, "--port", port)
    try:
        assert again == port
        assert first != second
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask(f"{first}scene.json")
        assert json.loads(ask(f"{second}scene.json"))["title"] == "house.laz"
        taken = subprocess.run(
            [sys.executable, "-m", "spatialq", "view", str(house / "house.laz"), "--port", port],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert taken.returncode == 1
        assert taken.stderr.startswith(f"error: view: port must be free, got {port}: ")
    finally:
        end(process)
