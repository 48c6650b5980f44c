"""The page in a browser, where there is one."""

import shutil
import subprocess

import pytest

from .conftest import EVIL, Parsed, step

BROWSERS = "chromium", "chromium-browser", "google-chrome", "chrome"
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no browser"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def dumped(url, folder, *flags):
    """What a browser makes of a page, and what it has to say of it."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += [f"--user-data-dir={folder}", "--dump-dom", *flags, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    says = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, says


def test_in_a_browser(begin, serve, tmp_path):
    querier, path = begin()
    step(querier, note=EVIL)
    server = serve(path)
    text, says = dumped(server.url, tmp_path / "profile", "--virtual-time-budget=9000")
    parsed = Parsed(text)
    assert EVIL in parsed.text
    assert "Have I measured enough?" in parsed.text
    assert "Up to date at" in parsed.text  # its script runs
    assert len(parsed.of("img")) == 3
    # It breaks none of its own rules. There is no icon.
    assert [line for line in says if "favicon" not in line and "404" not in line] == []


def test_it_takes_what_is_new(begin, serve, tmp_path):
    querier, path = begin(0)
    server = serve(path)
    plain, watched = type(server.watched).page, server.watched

    def page():
        found = plain(watched)
        if len(querier.X_) == 4:
            step(querier, note="told while it is shown")
        return found

    watched.page = page
    text, _ = dumped(server.url, tmp_path / "profile", "--virtual-time-budget=20000")
    assert "told while it is shown" in Parsed(text).text


def test_no_scripts_in_a_report(begin, tmp_path):
    from sklearn_asal.__main__ import main

    querier, path = begin(0)
    step(querier, note=EVIL)
    assert main(["report", str(path)]) == 0
    out = path.with_suffix(".html")
    harmed = out.read_text(encoding="utf-8").replace(
        "<h1>", "<script>document.title=1</script><h1>"
    )
    out.write_text(harmed, encoding="utf-8")
    text, says = dumped(out.as_uri(), tmp_path / "profile")
    assert "<title>Campaign campaign.jsonl</title>" in text
    assert any("Content Security Policy" in line for line in says)
    assert not any("style" in line.partition("violates")[0] for line in says)
