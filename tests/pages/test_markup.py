"""Pages as HTML: escaped, balanced, and nothing from elsewhere."""

import base64
import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_asal.pages.blocks import Facts, Page, Picture, Section, Table, Text
from sklearn_asal.pages.markup import SERVED_POLICY, asset, served, single_file

from .conftest import EVIL, Parsed

words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)


def page(text):
    picture = Picture("map", text, b"\x89PNG", (700, 300))
    blocks = [Text(text, True), Facts([(text, text)]), Table(text, [text], [[text]]), picture]
    return Page(text, [Section(text, blocks), Section("note", [Text("a")])])


@pytest.mark.parametrize("write", [lambda p: served(p, "1-2"), single_file])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(text=st.one_of(st.just(EVIL), st.just('" onload="x'), st.just("note"), words))
def test_text_stays_text(write, text):
    plain, parsed = Parsed(write(page("plain"))), Parsed(write(page(text)))
    assert [tag for tag, _ in parsed.tags] == [tag for tag, _ in plain.tags]
    # Columns of words, such as notes, have a class.
    found, expected = ([set(a) - {"class"} for _, a in one.tags] for one in (parsed, plain))
    assert found == expected
    assert parsed.of("img")[0]["alt"] == text
    assert parsed.text.count(" ".join(text.split())) >= 6 or not text.strip()


@pytest.mark.parametrize("write", [lambda p: served(p, "1-2"), single_file])
def test_nothing_from_elsewhere(write):
    text = write(page("plain"))
    assert not re.search(r"(?:https?:)?//[a-z]", text)
    assert "javascript:" not in text
    for tag, attributes in Parsed(text).tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag


def test_a_single_file_has_no_scripts_and_may_have_none():
    parsed = Parsed(single_file(page("plain")))
    assert parsed.of("script") == parsed.of("link") == []
    (policy,) = [m["content"] for m in parsed.of("meta") if "http-equiv" in m]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    style = re.search("<style>(.*?)</style>", single_file(page("plain")), re.S)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy
    data = parsed.of("img")[0]["src"]
    assert base64.b64decode(data.removeprefix("data:image/png;base64,")) == b"\x89PNG"


def test_what_is_served_needs_its_own_files_only():
    parsed = Parsed(served(page("plain"), "1-2"))
    assert parsed.of("script") == [{"src": "/watch.js", "defer": None}]
    assert parsed.of("img")[0]["src"] == "/figure/map.png?v=1-2"
    assert parsed.of("body") == [{"data-version": "1-2"}]
    assert "unsafe" not in SERVED_POLICY
    assert SERVED_POLICY.startswith("default-src 'none'")
    for name in ("style.css", "watch.js"):
        assert "http" not in asset(name)


def test_notes_alone_are_wide():
    row = Table("runs", ["number", "outcome", "note"], [["0", "safe", "sensor replaced"]])
    cells = Parsed(single_file(Page("page", [Section("section", [row])]))).of("td")
    assert [cell.get("class") for cell in cells] == [None, "text outcome", "text note"]
    rules = [rule for rule in asset("style.css").split("}") if "min-width: 14rem" in rule]
    assert [rule.partition("{")[0].strip() for rule in rules] == ["td.note"]


def test_it_can_be_used_without_eyes_or_a_mouse():
    parsed = Parsed(single_file(page("plain")))
    assert parsed.of("html") == [{"lang": "en"}]
    assert all(image["alt"] for image in parsed.of("img"))
    (region,) = [one for one in parsed.of("div") if one.get("role") == "region"]
    assert region["tabindex"] == "0"
    assert region["aria-label"]
    assert parsed.of("th") == [{"scope": "col"}]
    assert "prefers-color-scheme: dark" in asset("style.css")


def test_no_section_is_alone_beside_an_empty_place():
    narrow, table = Section("a", [Text("a")]), Section("t", [Table("t", ["x"], [["1"]])])
    for sections, wide in [
        ([narrow, narrow, table], [False, False, True]),
        ([narrow, table], [True, True]),
        ([narrow, narrow, narrow], [False, False, True]),
        ([table, narrow, narrow], [True, False, False]),
    ]:
        found = Parsed(single_file(Page("p", sections))).of("section")
        assert [one.get("class") == "wide" for one in found] == wide
