"""A campaign that goes on, its log, and its page."""

import threading
from html.parser import HTMLParser

import numpy as np
import pytest

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.pages.content import Names
from sklearn_asal.pages.server import Server, Watched

EVIL = '<script>alert("1")</script>&<img src=x onerror=alert(2)>'
VOID = {"meta", "link", "img", "br", "hr", "input"}


@pytest.fixture
def begin(tmp_path):
    """``begin(**params)`` is a querier with a log, and the path of that."""
    queriers = []

    def begun(n_queries=3, name="campaign.jsonl", **params):
        path = tmp_path / name
        bounds = {"speed": (900.0, 4000.0), "load": (0.0, 60.0)}
        querier = AmortizedSafeQuerier(
            **{"bounds": bounds, "safety_threshold": 850.0, "safe_when": "below", "log": path}
            | params
        )
        X = np.array([[1800.0, 20.0], [2000.0, 25.0], [2200.0, 22.0], [2100.0, 28.0]])
        querier.fit(X, *measured(X))
        for _ in range(n_queries):
            step(querier)
        queriers.append(querier)
        return querier, path

    yield begun
    for querier in queriers:
        querier.close_log()


def measured(X):
    X = np.atleast_2d(X)
    return 10 + np.sin(X[:, 0] / 700) + X[:, 1] / 30, 400 + X[:, 0] / 20 + 4 * X[:, 1]


def step(querier, note=None):
    """One more query and its measurement."""
    x, _ = querier.query(return_report=True)
    querier.tell(x, *measured(x), note=note)


@pytest.fixture
def serve():
    """``serve(path)`` serves the page of a log, on a free port."""
    servers = []

    def served(path, names=None):
        server = Server(Watched(path, names or Names()))
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return server

    yield served
    for server in servers:
        server.shutdown()
        server.server_close()


class Parsed(HTMLParser):
    """A page: whether its tags are balanced, its text, tags and their attributes."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    def of(self, tag):
        """Attributes of all tags of a name."""
        return [attributes for name, attributes in self.tags if name == tag]
