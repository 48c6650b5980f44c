"""Trained policies that differ in a setting: their cells, and rows of tables about them."""

import dataclasses

from ..benchmarks.summary import paper_rmse
from ..benchmarks.tasks import N_QUERIES
from .cells import Campaigns, Training
from .experiment import Number, Table, number

#: The paper's tasks for the policies of each preset.
TASKS = {
    "1d": ("sinus", "airline"),
    "2d": ("branin", "lgbb"),
    "5d": ("airfoil",),
    "safe-2d": ("simionescu", "townsend", "safe-lgbb"),
    "safe-3d": ("engine",),
    "safe-7d-fluid": ("fluid",),
}
# As in the paper, a dataset's nearest row is taken; of safe policies the nearest that a model of
# the rows nearby finds safe.
_NEAREST = ":n_candidates=1"


#: What pages say of the columns of simulated tasks.
ON_SIMULATED = (
    "Objectives are expected ones (I_mean, S_Hmean), whose mean is that of I and S_H. The GP test "
    "RMSE is against the function without noise. The paper's seems to be against noisy outputs: "
    "the noise of its prior alone has a standard deviation of 0.13 on average."
)


@dataclasses.dataclass(frozen=True)
class Variant:
    """Policies that differ by the seed of their training alone.

    Parameters
    ----------
    label : str
        In tables.
    name : str
        In names of cells.
    trainings : tuple of Training
    campaigns : int
        Seeds of each benchmark task.
    """

    label: str
    name: str
    trainings: tuple
    campaigns: int

    def deployed(self, task, queries):
        """Cells of campaigns on a task, one for each training.

        Parameters
        ----------
        task : str
        queries : int

        Returns
        -------
        list of Campaigns
        """
        return [
            Campaigns(
                f"{task}-{queries}-{training.name}",
                task,
                ("asal" if training.preset.safe else "aal") + _NEAREST,
                queries,
                self.campaigns,
                training,
            )
            for training in self.trainings
        ]


def variant(scale, preset, label, name, judge, **changes):
    """Trainings with some fields changed, one for each seed.

    Parameters
    ----------
    scale : Scale
    preset : str
        A key of ``PRESETS``.
    label, name : str
        See :class:`Variant`.
    judge : str
        See :class:`~sklearn_asal.reproduce.cells.Training`.
    **changes
        Fields of the preset.

    Returns
    -------
    Variant
    """
    made = scale.preset(preset, **changes)
    trainings = [
        Training(f"{preset}-{name}-seed{seed}", made.replace(seed=seed), scale.tasks, judge)
        for seed in range(scale.seeds)
    ]
    return Variant(label, name, tuple(trainings), scale.campaigns)


def untrained(scale, preset, judge, name="untrained", label="untrained", **changes):
    """The network before its training, to see what is owed to that.

    Parameters
    ----------
    scale, preset, judge, name, label
        See :func:`variant`.
    **changes
        Fields of the preset.

    Returns
    -------
    Variant
        Of one step that changes nothing.
    """
    still = {**changes, "lr": 1e-12, "direct_steps": 0}
    once = dataclasses.replace(scale, steps=1)
    return variant(once, preset, label, name, judge, **still)


def baseline(scale, task, method, queries):
    """Campaigns of a method that is not trained.

    Parameters
    ----------
    scale : Scale
    task, method : str
    queries : int

    Returns
    -------
    Campaigns
    """
    return Campaigns(f"{task}-{queries}-{method}", task, method, queries, scale.campaigns)


def pooled(results, cells, name):
    """One value of all cells that are done.

    Parameters
    ----------
    results : dict
        Of a Grid.
    cells : sequence of Cell
    name : str
        Of the value; lists are joined.

    Returns
    -------
    list
    """
    values = []
    for cell in cells:
        found = results.get(cell.name, {}).get(name, [])
        values += found if isinstance(found, list) else [found]
    return values


def trained(results, variant, name):
    """What a variant's evaluation gave.

    Parameters
    ----------
    results : dict
    variant : Variant
    name : str
        Such as "judge".

    Returns
    -------
    Number or None
        The error is that over seeds; of one seed, that over simulated tasks where it is known.
    """
    values = pooled(results, variant.trainings, name)
    if len(values) == 1 and values[0] is not None:
        (sem,) = pooled(results, variant.trainings, f"{name}_sem") or [None]
        return Number(values[0]) if sem is None else Number(values[0], sem)
    return number(values)


def measured(results, cells, safe):
    """RMSE of campaigns; with a limit also the share of safe queries.

    Parameters
    ----------
    results : dict
    cells : sequence of Campaigns
    safe : bool

    Returns
    -------
    list of Number or None
    """
    names = ("rmse", "safe_share") if safe else ("rmse",)
    return [number(pooled(results, cells, name)) for name in names]


def task_table(title, label, keys, safe):
    """An empty table of :func:`measured`.

    Parameters
    ----------
    title, label : str
    keys : tuple of str
    safe : bool

    Returns
    -------
    Table
    """
    columns = ("RMSE", "share of safe queries") if safe else ("RMSE",)
    return Table(title, label, keys, columns)


def known_rmse(task, method, queries):
    """The paper's RMSE of a method of the benchmark, for a row without limit.

    Parameters
    ----------
    task, method : str
    queries : int

    Returns
    -------
    tuple of Number
        Empty where there is none.
    """
    found = paper_rmse(task, method, queries)
    return () if found is None else (Number(*found),)


def length(scale, task):
    """The paper's number of queries on a task, at a scale.

    Parameters
    ----------
    scale : Scale
    task : str

    Returns
    -------
    int
    """
    return scale.queries(N_QUERIES[task])
