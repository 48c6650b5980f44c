"""What pages are made of."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Text:
    """A paragraph; a warning if it is one."""

    text: str
    is_warning: bool = False


@dataclass(frozen=True)
class Facts:
    """Names and what is to be said of them."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Table:
    """Rows of text.

    Attributes
    ----------
    caption : str
    header : sequence of str
    rows : sequence of sequence of str
    marked : sequence of str
        A kind of each row, such as "forgotten" or "unsafe"; "" for most.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: Sequence[str] = ()


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes
    ----------
    name : str
        Of letters alone.
    alt : str
        What it shows, in words.
    png : bytes
    size : tuple of int
        Width and height in pixels of the page.
    """

    name: str
    alt: str
    png: bytes
    size: tuple[int, int]


Block = Text | Facts | Table | Picture


@dataclass(frozen=True)
class Section:
    """A heading, and what is below it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """All of a page.

    Attributes
    ----------
    title : str
    sections : sequence of Section
    """

    title: str
    sections: Sequence[Section] = field(default_factory=tuple)

    def pictures(self) -> dict[str, Picture]:
        """All figures, by name."""
        blocks = (block for section in self.sections for block in section.blocks)
        return {block.name: block for block in blocks if isinstance(block, Picture)}
