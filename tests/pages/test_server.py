"""What the server answers, and to whom."""

import http.client
import json
import re
import socket
import threading

import pytest

from sklearn_asal.pages.content import Names
from sklearn_asal.pages.figures import Figures
from sklearn_asal.pages.server import Server, Watched

from .conftest import EVIL, Parsed, measured, step

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def ask(server, path="/", method="GET", **headers):
    """Status, headers and text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def state(server):
    return json.loads(ask(server, "/state.json")[2])


def test_the_page_and_all_that_it_loads(begin, serve):
    querier, path = begin()
    step(querier, note=EVIL)
    server = serve(path, Names("torque", units={"speed": "1/min"}))
    status, headers, body = ask(server)
    text = body.decode()
    parsed = Parsed(text)
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    for words in ("Map", "Margins", "Have I measured enough?", "torque", "speed (1/min)"):
        assert words in parsed.text
    assert EVIL in parsed.text
    assert len(parsed.of("script")) == 1
    assert not re.search(r"(?:https?:)?//[a-z]", text.replace("</", ""))
    loaded = [parsed.of("script")[0]["src"], parsed.of("link")[0]["href"]]
    loaded += [image["src"] for image in parsed.of("img")]
    assert len(loaded) == 5
    kinds = {}
    for one in loaded:
        status, headers, body = ask(server, one)
        kinds[one] = headers["Content-Type"]
        assert status == 200
        assert int(headers["Content-Length"]) == len(body) > 0
        if "png" in one:
            assert body.startswith(b"\x89PNG")
    assert set(kinds.values()) == {
        "text/javascript; charset=utf-8",
        "text/css; charset=utf-8",
        "image/png",
    }


def test_nothing_can_be_changed(begin, serve):
    _, path = begin(0)
    before, server = path.read_bytes(), serve(path)
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        status, headers, _ = ask(server, method=method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD")
    status, headers, body = ask(server, "/state.json", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 0
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "path",
    [
        "/campaign.jsonl",
        "/../campaign.jsonl",
        "/figure/../../campaign.jsonl",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/figure/nothing.png",
        "/style.css/",
        "//etc/passwd",
        "/server.py",
    ],
)
def test_nothing_else_is_there(begin, serve, path):
    _, log = begin(0)
    assert ask(serve(log), path)[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", ""])
def test_pages_of_others_get_no_answer(begin, serve, host):
    _, path = begin(0)
    server = serve(path)
    for one in ("/", "/state.json", "/figure/campaign.png"):
        status, _, body = ask(server, one, Host=host)
        assert status == 403
        assert b"speed" not in body
    assert ask(server, "/state.json", Host=f"localhost:{server.server_port}")[0] == 200


def test_it_listens_to_this_machine_alone(begin, serve):
    _, path = begin(0)
    assert serve(path).server_address[0] == "127.0.0.1"


def test_the_state_grows_with_the_log(begin, serve):
    querier, path = begin(0)
    server = serve(path)
    first = state(server)
    assert (first["state"], first["measurements"]) == ("campaign", 4)
    assert state(server) == first
    querier.tell([2000.0, 30.0], *(float(one[0]) for one in measured([[2000.0, 30.0]])))
    second = state(server)
    assert second["measurements"] == 5
    assert second["version"] != first["version"]
    _, headers, _ = ask(server, "/state.json")
    tag = headers["ETag"]
    status, _, body = ask(server, "/state.json", **{"If-None-Match": tag})
    assert (status, body) == (304, b"")


def test_before_there_is_a_log(tmp_path, serve, begin):
    path = tmp_path / "campaign.jsonl"
    server = serve(path)
    assert state(server)["state"] == "waiting"
    assert "Waiting: " in Parsed(ask(server)[2].decode()).text
    path.write_text('{"event": "camp')
    assert state(server)["state"] == "waiting"
    path.unlink()
    begin(0)
    assert state(server)["state"] == "campaign"
    assert "Margins" in Parsed(ask(server)[2].decode()).text


def test_half_a_line(begin, serve):
    _, path = begin(1)
    with path.open("ab") as file:
        file.write(b'{"event": "tell", "ti')
    server = serve(path)
    assert (state(server)["state"], state(server)["measurements"]) == ("campaign", 5)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json <b>\n", "line 2 is damaged"),
        ('{"event": "tell"}\n', "line 2 of the log is damaged: KeyError"),
        ('{"event": "tell", "time": 3, "x": 4}\n', "line 2 of the log is damaged: TypeError"),
    ],
)
def test_a_log_that_is_broken(begin, serve, line, message):
    querier, path = begin(0)
    querier.close_log()
    path.write_text(path.read_text() + line)
    server = serve(path)
    parsed = Parsed(ask(server)[2].decode())
    assert message in parsed.text
    assert state(server)["state"] == "broken"
    assert message in state(server)["message"]
    assert "b" not in {tag for tag, _ in parsed.tags}


def test_an_old_log_is_another_one(begin, serve):
    querier, path = begin(0)
    server = serve(path)
    before = ask(server)[2]
    querier.close_log()
    path.unlink()
    begin(2)
    assert ask(server)[2] != before
    assert state(server)["measurements"] == 6


def test_a_page_is_made_once(begin, monkeypatch):
    querier, path = begin(0)
    made, watched = [], Watched(path, Names())
    monkeypatch.setattr(Figures, "_picture", lambda *arguments: made.append(arguments[1]))
    threads = [threading.Thread(target=watched.page) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == ["campaign", "progress", "safety"]
    querier.query()
    watched.page()
    assert len(made) == 6


def test_a_campaign_that_goes_on_while_it_is_shown(begin, serve, monkeypatch):
    querier, path = begin(0)
    monkeypatch.setattr(Figures, "_picture", lambda *arguments: None)
    server, done, seen = serve(path), threading.Event(), []

    def measure():
        for _ in range(12):
            step(querier)
        done.set()

    thread = threading.Thread(target=measure)
    thread.start()
    while not done.is_set():
        assert ask(server)[0] == 200
        seen.append(state(server)["measurements"])
    thread.join()
    assert seen == sorted(seen)
    assert state(server)["measurements"] == 16


def test_a_port_that_is_taken(begin):
    _, path = begin(0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"--port {port} cannot be had.*choose another one"):
            Server(Watched(path, Names()), port)
