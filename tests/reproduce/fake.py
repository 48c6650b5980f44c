"""Cells without work, and an experiment of them."""

import dataclasses

from sklearn_asal.reproduce.experiment import Experiment, Number, Table, number
from sklearn_asal.reproduce.grid import Cell


@dataclasses.dataclass(frozen=True)
class Square(Cell):
    """``value ** 2``; calls ``before`` first, which is no part of its settings."""

    value: int = 0
    before: object = None
    needs: tuple = ()
    timed: bool = False

    def settings(self):
        return {"value": self.value, "of": {"needs": list(self.needs)}}

    def work(self, place):
        if self.before is not None:
            self.before()
        return {"square": self.value**2}


def squares(n, **changes):
    return [Square(f"cell-{i}", i, **changes.get(f"cell_{i}", {})) for i in range(n)]


def cells(scale):
    return squares(3)


def tables(scale, results):
    table = Table("Squares", "table-squares", ("group", "which"), ("square", "half"))
    for i, cell in enumerate(squares(3)):
        found = results.get(cell.name, {}).get("square")
        paper = (Number(4.5, 0.25), None) if i == 2 else ()
        half = None if found is None else Number(found / 2, text=f"about {found / 2}")
        table.add(("a" if i else "b", cell.name), [number([found]), half], paper)
    return [table, Table("Empty", "table-empty", ("group",), ("square",))]


EXPERIMENT = Experiment(
    "squares", "Squares of numbers", ("table-squares",), "Numbers, squared.", cells, tables, "Four."
)
