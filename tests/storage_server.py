"""A real server of object storage on this machine: moto's, behind a proxy that counts and fails."""

import http.client
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SECRET = "c0nfidential/KeyThatNobodyMaySee"
TOKEN = "t0kenThatNobodyMaySee"
ACCESS = "AKIATHATNOBODYMAYSEE"
HOST = "127.0.0.1"


@dataclass
class Server:
    """What the proxy saw, and what it is to do."""

    port: int
    behind: int
    requests: list = field(default_factory=list)
    """Method, path and bytes of the body that was answered."""
    fail: object = None
    """Called with method and path: None, a status, or 'close' for a body that is cut off."""

    @property
    def url(self):
        return f"http://{HOST}:{self.port}"

    def sent(self, part=""):
        """Count the bytes that went out for objects whose names have a text in them."""
        return sum(size for method, path, size in self.requests if part in path and method == "GET")

    def count(self, method, part=""):
        return sum(method == each and part in path for each, path, _ in self.requests)

    def make_bucket(self, name):
        self.put(name, b"")

    def put(self, name, content):
        """Write an object without the proxy."""
        self._ask("PUT", name, content)

    def get(self, name):
        """Read an object without the proxy."""
        return self._ask("GET", name)

    def _ask(self, method, name, content=None):
        who = f"AWS4-HMAC-SHA256 Credential={ACCESS}/20260101/us-east-1/s3/aws4_request"
        kind = {"Content-Type": "application/octet-stream", "Authorization": who}
        url = f"http://{HOST}:{self.behind}/{name}"
        request = urllib.request.Request(url, data=content, headers=kind, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    @property
    def variables(self):
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": ACCESS,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SESSION_TOKEN": TOKEN,
            "AWS_REGION": "eu-central-1",
        }


def command():
    """Find moto's server, which has an environment of its own: it needs an older dateutil."""
    own = Path(sys.prefix) / "moto" / "bin" / "moto_server"
    found = str(own) if own.exists() else shutil.which("moto_server")
    if found is None:
        message = "moto's server is not installed: make .venv/moto/.ready"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def port_of(process):
    """Read which port a server says that it has taken."""
    for line in process.stderr:
        if found := re.search(rf"http://{re.escape(HOST)}:(\d+)", line):
            return int(found[1])
    return pytest.fail("moto's server does not start")


def running():
    """Run server and proxy; a generator for a fixture."""
    # a port that was found free here might be taken by then
    process = subprocess.Popen(
        [command(), "-H", HOST, "-p", "0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    told = threading.Thread(target=process.stderr.read)  # or it would wait in the end
    try:
        port = port_of(process)
        told.start()
        server = Server(0, port)
        proxy = ThreadingHTTPServer((HOST, 0), handler(server, port))
        server.port = proxy.server_address[1]
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        yield server
        proxy.shutdown()
        proxy.server_close()
        thread.join()
    finally:
        process.kill()
        process.wait()
        if told.ident:
            told.join()
        process.stderr.close()


def handler(server, behind):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            wrong = server.fail(self.command, self.path) if server.fail else None
            if isinstance(wrong, int):
                server.requests.append((self.command, self.path, 0))
                self.send_response(wrong)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            connection = http.client.HTTPConnection(HOST, behind, timeout=60)
            headers = {k: v for k, v in self.headers.items() if k.lower() != "connection"}
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            size = len(content) if self.command != "HEAD" else answer.getheader("Content-Length", 0)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            if wrong == "close":
                content = content[: len(content) // 2]
                self.close_connection = True
            server.requests.append((self.command, self.path, len(content)))
            self.wfile.write(content)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

        def log_message(self, *_):
            pass

    return Handler
