"""The kinds of cells: a training, campaigns, times of steps, times of queries."""

import dataclasses
import io
import os
import tempfile
import time
import types
import warnings
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import numpy as np

from ..benchmarks.latency import latencies
from ..benchmarks.methods import make
from ..benchmarks.protocol import choose
from ..benchmarks.runner import run_cells
from ..policies.registry import load_policy
from ..pool import CandidatePool
from ..trainer.evaluate import evaluate
from ..trainer.loop import Trainer
from ..trainer.presets import Preset
from .grid import Cell

# Of the tasks on which trained policies are evaluated.
_SEED = 1
# Simulated tasks of a validation, at most.
_VALIDATION = 256


@dataclasses.dataclass(frozen=True)
class Training(Cell):
    """Train a policy, and evaluate it on fresh simulated tasks.

    Parameters
    ----------
    name : str
    preset : Preset
    tasks : int
        To evaluate it on.
    judge : str
        Objective by which it is judged as well, so that policies trained by others compare.
    """

    preset: Preset
    tasks: int
    judge: str

    def settings(self):
        """Preset, judge, and tasks of evaluation and validation."""
        names = "tasks", "judge", "validation"
        return {
            "preset": self.preset.to_dict(),
            **{name: getattr(self, name) for name in names},
        }

    @property
    def validation(self):
        """Simulated tasks of a validation."""
        return min(_VALIDATION, max(1, self.tasks // 2))

    @property
    def cost(self):
        """By the observations of a step."""
        p = self.preset
        return 2.0 + 2e-4 * p.steps * p.batch * (p.n_init + p.max_budget)

    def folder(self, place):
        """The folder of the run."""
        return place.folder / "trainings" / self.name

    def work(self, place):
        """Objective, judge, GP test RMSE, unsafe share and border share of the best policy."""
        out = self.folder(place)
        trainer = Trainer(
            self.preset,
            out,
            threads=1,
            save_every=30.0,
            validation_tasks=self.validation,
            progress=place.progress,
        )
        # Its advice, --resume, is for the command train.
        with redirect_stdout(io.StringIO()):
            trainer.run(resume=(out / "state.pt").exists())
        if trainer.interrupted:
            raise KeyboardInterrupt
        network, _ = load_policy(trainer.policy_path, safe=self.preset.safe)
        result = evaluate(network, self.preset, self.tasks, _SEED)
        judged = result
        if self.judge != self.preset.objective:
            judge = self.preset.replace(objective=self.judge, n_grid=self.preset.n_grid or 100)
            judged = evaluate(network, judge, self.tasks, _SEED, n_rmse=0)
        return {**result, "judge": judged["objective"], "judge_sem": judged["objective_sem"]}


@dataclasses.dataclass(frozen=True)
class Campaigns(Cell):
    """Campaigns on a task of the benchmark, by its protocol.

    Parameters
    ----------
    name : str
    task, method : str
        Of the benchmark.
    queries : int
        Of each campaign.
    campaigns : int
        Seeds 0 to ``campaigns - 1``.
    training : Training or None
        Whose policy is deployed; None for methods without one, and for shipped policies.
    timed : bool
        Whether the seconds of their queries are kept.
    pool_size : int or None
        Trajectories in the pool of the task fluid.
    """

    task: str
    method: str
    queries: int
    campaigns: int
    training: Training | None = None
    timed: bool = False
    pool_size: int | None = None

    @property
    def needs(self):
        """The training."""
        return () if self.training is None else (self.training.name,)

    def settings(self):
        """All parameters, and those of the training."""
        names = "task", "method", "queries", "campaigns", "timed", "pool_size"
        training = None if self.training is None else self.training.settings()
        return {**{name: getattr(self, name) for name in names}, "training": training}

    @property
    def cost(self):
        """By the number of queries."""
        return self.campaigns * (1.0 + 0.02 * self.queries)

    def work(self, place):
        """RMSE, safe share and share of truly safe queries of each seed; times if asked for.

        The time of a campaign is that of its median query times their number.
        """
        policy = None
        if self.training is not None:
            policy = self.training.folder(place) / "policy.safetensors"
        load = _load()
        with _each_warning_once():
            results = run_cells(
                place.folder / "campaigns" / self.name,
                [self.task],
                [self.method],
                self.campaigns,
                n_queries=self.queries,
                every=self.queries,
                policy=policy,
                pool_size=self.pool_size,
                data_home=place.data_home,
                progress=False,
            )
        for cell in results.failed:
            raise RuntimeError(results.failures[cell])
        records = [results.records[cell] for cell in sorted(results.records)]
        last = [campaign[-1] for campaign in records]
        names = "rmse", "safe_share", "truly_safe_share"
        # JSON has no nan.
        found = {name: [_or_none(getattr(record, name)) for record in last] for name in names}
        if self.timed:
            # By the median, since single queries wait for other processes.
            found["seconds"] = [
                len(campaign) * float(np.median([record.seconds for record in campaign]))
                for campaign in records
            ]
            found["load"] = load
        return found


@contextmanager
def _each_warning_once():
    """One warning of each text, in place of one for each campaign."""
    with warnings.catch_warnings(record=True) as seen:
        yield
    for text, kind in dict.fromkeys((str(one.message), one.category) for one in seen):
        warnings.warn(text, kind, stacklevel=3)


def _load():
    """Processes that compete for cores, as a mean of the last minute; None on Windows."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _or_none(value):
    return None if np.isnan(value) else float(value)


@dataclasses.dataclass(frozen=True)
class Steps(Cell):
    """Time steps of a training.

    Parameters
    ----------
    name : str
    preset : Preset
        Its number of steps is timed, less the first; at least two.
    """

    preset: Preset
    timed = True

    def settings(self):
        """The preset."""
        return {"preset": self.preset.to_dict()}

    @property
    def cost(self):
        """By the observations of a step."""
        p = self.preset
        return 2e-3 * p.steps * p.batch**0.5 * (p.n_init + p.max_budget)

    def work(self, place):
        """Seconds of a step: CPU time of one thread, which other processes hardly change."""
        load = _load()
        more, one = (_cpu_seconds(self.preset.replace(steps=n)) for n in (self.preset.steps, 1))
        return {"seconds": (more - one) / (self.preset.steps - 1), "load": load}


def _cpu_seconds(preset):
    """Of a whole training, with a validation on one task."""
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        trainer = Trainer(
            preset,
            Path(folder) / "run",
            threads=1,
            save_every=1e9,
            validate_every=10**9,
            validation_tasks=1,
            progress=False,
        )
        trainer.prepare()
        start = time.process_time()
        trainer.advance()
        if trainer.interrupted:
            raise KeyboardInterrupt
        return time.process_time() - start


@dataclasses.dataclass(frozen=True)
class Queries(Cell):
    """Time queries.

    Parameters
    ----------
    name : str
    method : str
        Of the benchmark.
    features : int
    observations : int
        Number of them when the query is asked for.
    pool : int
        Rows to choose from, at random.
    calls : int
        Each with data of its own.
    """

    method: str
    features: int
    observations: int
    pool: int
    calls: int
    timed = True

    def settings(self):
        """All parameters."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name != "name"
        }

    @property
    def cost(self):
        """By the rows of the pool."""
        return self.calls * (0.01 + 1e-6 * self.pool)

    def work(self, place):
        """Median seconds of a query in a campaign that has just been told its last observation."""
        bounds = [(0.0, 1.0)] * self.features
        task = types.SimpleNamespace(name="times", gamma=0.05, bounds=bounds)
        querier = make(self.method, task)
        querier.set_params(bounds=bounds, budget=1, random_state=0)
        rows = np.random.default_rng(0).random((self.pool, self.features))
        pool = CandidatePool(rows)
        load = _load()

        def prepare(X, y, z):
            querier.fit(X, y, z)
            return lambda: choose(querier, pool, [])

        with warnings.catch_warnings():
            # Policies by name were trained for fewer observations, and made-up data may be unsafe.
            warnings.simplefilter("ignore")
            seconds = latencies(prepare, self.observations, self.features, self.calls)
        return {"seconds": float(np.median(seconds)), "load": load}
