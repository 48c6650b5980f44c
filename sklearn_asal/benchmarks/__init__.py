"""The paper's ten experiments and two more: tasks, protocol, runner and report."""

from .protocol import Record, run
from .runner import run_cells
from .sources import FunctionSource, TableSource
from .tasks import TASKS, Task, Trial, get_task

__all__ = [
    "TASKS",
    "FunctionSource",
    "Record",
    "TableSource",
    "Task",
    "Trial",
    "get_task",
    "run",
    "run_cells",
]
