"""Serves the page of a log to the browsers of this machine, and to nobody else."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..log import CampaignLog
from ..log.record import record_of
from .blocks import Page
from .content import Names, notice, read, running
from .figures import Figures
from .markup import SERVED_POLICY, asset, served

_HOST = "127.0.0.1"
# Seconds that a browser may take to say what it wants.
_PATIENCE = 10


class Watched:
    """A log, and the page of what is in it now. Any number of threads may ask.

    Parameters
    ----------
    path : path-like
        It is read, and never written to, locked or mended.
    names : Names
    """

    def __init__(self, path: Any, names: Names) -> None:
        self.path, self.names = Path(path), names
        self.title = f"Campaign {self.path.name}"
        self._figures = Figures()
        self._reading, self._drawing = threading.Lock(), threading.Lock()
        self._read: tuple[str, Any, str, bool] | None = None
        self._page: tuple[str, Page] | None = None

    def version(self) -> str:
        """Changes when the file does."""
        try:
            found = self.path.stat()
        except OSError as error:
            return f"none-{error.errno}"
        return f"{found.st_ino:x}-{found.st_size}-{found.st_mtime_ns:x}"

    def state(self) -> dict[str, Any]:
        """The version, how many measurements there are, and what keeps them from being shown."""
        version, events, problem, is_broken = self._events()
        n = 0 if events is None else len(record_of(events).kept)
        state = "campaign" if events else "broken" if is_broken else "waiting"
        return {"version": version, "state": state, "measurements": n, "message": problem}

    def page(self) -> tuple[str, Page]:
        """The version and its page, which is made once."""
        with self._drawing:
            version, events, problem, is_broken = self._events()
            if self._page is None or self._page[0] != version:
                self._page = version, self._made(events, problem, is_broken)
            return self._page

    def _events(self):
        with self._reading:
            # Before it is read: what is written meanwhile is news.
            version = self.version()
            if self._read is None or self._read[0] != version:
                self._read = version, *self.parsed()
            return self._read

    def parsed(self) -> tuple[list[dict[str, Any]] | None, str, bool]:
        """The lines or None, what keeps them from being shown, and whether it is an error."""
        try:
            content = self.path.read_bytes()
            if b"\n" not in content:
                return None, f"{self.path} has no campaign yet.", False
            events = CampaignLog(self.path).read(content)
            record_of(events)  # raises where a line is damaged
            return events, "", False
        except FileNotFoundError:
            return None, f"{self.path} is not there yet.", False
        except (ValueError, OSError) as error:
            return None, str(error), True

    def _made(self, events, problem, is_broken):
        if events is None:
            text = problem if is_broken else f"Waiting: {problem}"
            return notice(self.title, text, is_broken)
        campaign = read(events, str(self.path), self.names)
        return running(campaign, self.title, self.names, self._figures)


class Server(ThreadingHTTPServer):
    """Answers on 127.0.0.1 alone, and only to requests that are meant for it.

    Parameters
    ----------
    watched : Watched
    port : int, default=0
        0 takes a free one.

    Raises
    ------
    OSError
        The port cannot be had; the message says what to do.
    """

    daemon_threads = True
    # So that it can be started again at once. On Windows two programs could have one port, then.
    allow_reuse_address = os.name != "nt"

    def __init__(self, watched: Watched, port: int = 0) -> None:
        self.watched = watched
        try:
            super().__init__((_HOST, port), Handler)
        except OSError as error:
            raise OSError(
                f"--port {port} cannot be had ({error.strerror}). Another program uses it, or it "
                "is not for you: choose another one, or leave --port out."
            ) from error
        self.hosts = {f"{name}:{self.server_port}" for name in (_HOST, "localhost")}

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{_HOST}:{self.server_port}/"

    def handle_error(self, request, client_address):
        """Browsers that go away are no errors."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    server_version, sys_version = "sklearn-asal", ""
    timeout = _PATIENCE

    def do_GET(self) -> None:
        """Answer with the page or a part of it."""
        # A page of somebody else, whose name resolves to this machine, would say its own name.
        if self.headers.get("Host") not in self.server.hosts:
            self._send(403, "text/plain", b"This page is for the browsers of this machine.\n")
            return
        watched, path = self.server.watched, urlsplit(self.path).path
        if path == "/":
            version, page = watched.page()
            self._send(200, "text/html", served(page, version).encode())
        elif path == "/state.json":
            state = watched.state()
            tag = f'"{state["version"]}"'
            if self.headers.get("If-None-Match") == tag:
                self._send(304, "application/json", b"", tag)
                return
            self._send(200, "application/json", json.dumps(state).encode(), tag)
        elif path in ("/style.css", "/watch.js"):
            kind = "text/css" if path == "/style.css" else "text/javascript"
            self._send(200, kind, asset(path[1:]).encode())
        elif path.startswith("/figure/"):
            pictures = watched.page()[1].pictures()
            picture = pictures.get(path.removeprefix("/figure/").removesuffix(".png"))
            if picture is None:
                self._send(404, "text/plain", b"There is no such figure.\n")
            else:
                self._send(200, "image/png", picture.png)
        else:
            self._send(404, "text/plain", b"There is no such page.\n")

    do_HEAD = do_GET

    def _refuse(self) -> None:
        self._send(405, "text/plain", b"This page can only be looked at.\n")

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_CONNECT = do_TRACE = _refuse

    def _send(self, status: int, kind: str, body: bytes, tag: str | None = None) -> None:
        self.send_response(status)
        is_text = kind != "image/png"
        self.send_header("Content-Type", kind + ("; charset=utf-8" if is_text else ""))
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", SERVED_POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")
        if tag is not None:
            self.send_header("ETag", tag)
        if status == 405:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD" and status != 304:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is the user's."""
