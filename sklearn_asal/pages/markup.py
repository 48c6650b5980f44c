"""Pages as HTML. All text is escaped here, and nowhere else."""

import base64
import hashlib
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from .blocks import Facts, Page, Picture, Section, Table, Text

# Columns whose cells are words, by their names.
_WORDS = "outcome", "note", "name", "value"
# Pixels of figures that have half the width of a page.
_NARROW = 600

#: What a page that is served may load: its own files alone.
SERVED_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def asset(name: str) -> str:
    """A file of this folder: ``style.css`` or ``watch.js``."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def served(page: Page, version: str) -> str:
    """A page that looks for news of itself; its figures are ``/figure/NAME.png``.

    Parameters
    ----------
    page : Page
    version : str
        Changes when the page does.

    Returns
    -------
    str
    """
    head = (
        '<link rel="stylesheet" href="/style.css">\n<script src="/watch.js" defer></script>\n'
        '<noscript><meta http-equiv="refresh" content="10"></noscript>'
    )
    mark = escape(version)
    body = _body(page, lambda picture: f"/figure/{picture.name}.png?v={mark}")
    status = '<p id="state" role="status">Looks for news every two seconds.</p>\n'
    return _document(page.title, head, f' data-version="{mark}"', status + body)


def single_file(page: Page) -> str:
    """A page that has all it needs in itself, and no scripts.

    Parameters
    ----------
    page : Page

    Returns
    -------
    str
    """
    style = asset("style.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>'

    def source(picture):
        return "data:image/png;base64," + base64.b64encode(picture.png).decode()

    return _document(page.title, head, "", _body(page, source))


def _document(title, head, attributes, body):
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n{head}\n</head>\n"
        f"<body{attributes}>\n<h1>{escape(title)}</h1>\n{body}</body>\n</html>\n"
    )


def _body(page: Page, source: Callable[[Picture], str]) -> str:
    both = zip(page.sections, _wide(page.sections), strict=True)
    sections = "".join(_section(section, is_wide, source) for section, is_wide in both)
    return f"<main>\n{sections}</main>\n"


def _wide(sections: Sequence[Section]) -> list[bool]:
    """Which sections are as wide as the page; two others are side by side, and none is alone."""
    wide = [
        any(
            isinstance(block, Table) or (isinstance(block, Picture) and block.size[0] > _NARROW)
            for block in section.blocks
        )
        for section in sections
    ]
    i = 0
    while i < len(wide):
        is_pair = not wide[i] and i + 1 < len(wide) and not wide[i + 1]
        wide[i] = wide[i] or not is_pair
        i += 2 if is_pair else 1
    return wide


def _section(section: Section, is_wide: bool, source: Callable[[Picture], str]) -> str:
    blocks = "".join(_block(block, source) for block in section.blocks)
    wide = ' class="wide"' if is_wide else ""
    return f"<section{wide}>\n<h2>{escape(section.title)}</h2>\n{blocks}</section>\n"


def _block(block: Any, source: Callable[[Picture], str]) -> str:
    if isinstance(block, Text):
        kind = ' class="warning"' if block.is_warning else ""
        return f"<p{kind}>{escape(block.text)}</p>\n"
    if isinstance(block, Facts):
        pairs = (f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>\n" for name, text in block.pairs)
        return f"<dl>\n{''.join(pairs)}</dl>\n"
    if isinstance(block, Picture):
        width, height = block.size
        return (
            f'<figure><img src="{escape(source(block))}" width="{width}" height="{height}" '
            f'alt="{escape(block.alt)}"></figure>\n'
        )
    return _table(block)


def _kind(name):
    """The class of a column of words."""
    return f' class="text {name}"' if name in _WORDS else ""


def _table(table: Table) -> str:
    kinds = [_kind(name) for name in table.header]
    header = "".join(
        f'<th scope="col"{kind}>{escape(name)}</th>'
        for name, kind in zip(table.header, kinds, strict=True)
    )
    marked = table.marked or [""] * len(table.rows)
    lines = []
    for row, mark in zip(table.rows, marked, strict=True):
        cells = zip(row, kinds, strict=True)
        row_kind = f' class="{escape(mark)}"' if mark else ""
        text = "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in cells)
        lines.append(f"<tr{row_kind}>{text}</tr>\n")
    # Wide tables scroll by themselves, also by keys.
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{escape(table.caption)}">\n'
        f"<table>\n<caption>{escape(table.caption)}</caption>\n"
        f"<thead><tr>{header}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody>\n</table>\n</div>\n"
    )
