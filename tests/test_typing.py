"""Type hints: there for all that is public, and right for a type checker."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_asal
from sklearn_asal import acquisition, benchmarks, datasets, displays, policies, surrogates

ROOT = Path(__file__).parents[1]

# Lines that a type checker has to refuse end in the kind of error.
PROGRAM = """
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from typing_extensions import assert_type

from sklearn_asal import (
    ActiveLearner,
    AmortizedQuerier,
    AmortizedSafeQuerier,
    CandidatePool,
    GPQuerier,
    GPSafeQuerier,
    Grid,
    Integer,
    LipschitzBound,
    Log,
    NoSafeCandidateError,
    RandomQuerier,
    SafetyGuard,
)
from sklearn_asal.acquisition import Report
from sklearn_asal.benchmarks import FunctionSource, Record, TableSource, Task, get_task, run
from sklearn_asal.datasets import Function, branin
from sklearn_asal.policies import load_policy, read_header
from sklearn_asal.surrogates import AmortizedGP, EnsembleGP, ExactGP, SparseGP, as_surrogate

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def campaign(X: Floats, y: list[float], flag: bool) -> None:
    pool = CandidatePool(X)
    assert_type(CandidatePool.from_bounds([(0, 6), (-5, 30)], n_rows=64).X, Floats)
    safe = AmortizedSafeQuerier(
        Path("policy.safetensors"),
        bounds=[(0, 6), (-5, 30)],
        budget=20,
        random_state=np.random.default_rng(0),
        safety_threshold=[350.0, 1.0],
        safe_when=["below", "above"],
        z_scale="auto",
    )
    assert_type(safe.fit([[0.5, 0.5]], [0.3], [[1.0, 2.0]]), AmortizedSafeQuerier)
    assert_type(safe.tell([0.5, 0.5], 0.3, [1.0, 2.0], index=3), AmortizedSafeQuerier)
    assert_type(safe.forget(-1).forget([0, 1]), AmortizedSafeQuerier)
    assert_type(safe.correct(0, z=[1.0, 2.0], status="ok"), AmortizedSafeQuerier)
    assert_type(safe.X_, Floats)
    assert_type(safe.n_told_, int)
    assert_type(safe.fit(X, y).query(), Floats)
    assert_type(safe.query(pool=pool, n_queries=2), Floats)
    assert_type(safe.query(pool=X, return_indices=True), tuple[Floats, Rows])
    assert_type(safe.query(X, y, y, budget=3, return_indices=False), Floats)
    assert_type(safe.query(return_report=True), tuple[Floats, Report])
    assert_type(safe.assess(X), Report)
    assert_type(safe.progress(X, y, y, pool=pool, n_more=3).rmse_after, Floats)
    assert_type(RandomQuerier(stop_when=0.1, repeat_every=5).is_finished(), bool)
    assert_type(safe.safety_rule, str)
    guarded = AmortizedSafeQuerier("2d", guard=SafetyGuard(gamma=0.02))
    assert_type(guarded.guard_.check(X), NDArray[np.bool_])
    assert_type(guarded.guard_.pull_back(X), Floats)
    assert_type(guarded.calibration().is_believable, bool)
    assert_type(GPSafeQuerier(guard=True).calibration(X, y, y).scores, Floats)
    assert_type(AmortizedQuerier.from_pretrained("2d", budget=3), AmortizedQuerier)
    assert_type(AmortizedQuerier().propose_many([(X, y), (X, y)], budgets=[3, 4]), Floats)
    assert_type(RandomQuerier().fit(pl.DataFrame({"a": y}), pl.Series(y)), RandomQuerier)
    kinds = [Integer(1, 8), Log(1e-9, 1e-3), Grid([0.1, 0.2]), (0.0, 60.0)]
    RandomQuerier(bounds=kinds, max_step={"T": 0.1}, constraints=[])
    GPQuerier(bounds={"T": (0, 1), "n": Integer(1, 8)}, max_step=[0.1, 2])
    held = GPSafeQuerier(lipschitz=LipschitzBound([1.0, 2.0], noise=0.1), bounds=Log(1, 10))
    assert_type(held.query(fixed={"T": 1.0, 1: 2}, pending=X), Floats)
    assert_type(held.query(fixed={0: 1.0}, pool=X, return_indices=True), tuple[Floats, Rows])
    assert_type(held.withdraw(X).set_output(transform="pandas"), GPSafeQuerier)
    assert_type(held.pending_, Floats)
    assert_type(held.approach(X, n_steps=3).p_safe, Floats | None)
    gp = GPSafeQuerier("sparse", acquisition="min_unsafe", gamma=0.1)
    assert_type(gp.query(), Floats)
    assert_type(gp.query(pool=pool, return_indices=True), tuple[Floats, Rows])
    assert_type(gp.query(return_report=True), tuple[Floats, Report])
    points, rows, report = gp.query(pool=X, return_indices=True, return_report=True)
    assert_type(points, Floats)
    assert_type(rows, Rows)
    assert_type(report.p_safe, Floats | None)
    assert_type(GPQuerier(SparseGP(n_inducing=5)).assess([0.5, 0.5]), Report)
    gp.query(pool=pool, return_indices=flag, return_report=flag)
    learner = ActiveLearner(object(), safe, refit=3).fit(X, y, y)
    assert_type(learner.run(lambda x: (x.sum(), 0.1), 3, pool=pool), ActiveLearner)
    assert_type(ActiveLearner.from_fitted(object(), safe), ActiveLearner)
    try:
        gp.query()
    except NoSafeCandidateError as error:
        assert_type(error.probability, float)

    safe.fit(X)  # call-arg
    safe.fit(X, y, Z=y)  # call-arg
    safe.fit(X, object())  # arg-type
    safe.tell(X, y, y, 3)  # call-arg
    safe.query(n_queries="2")  # call-overload
    RandomQuerier().query(return_report=True)  # call-overload
    wrong: Floats = safe.query(pool=pool, return_indices=True)  # assignment
    wrong_too: tuple[Floats, Rows] = gp.query(return_report=True)  # assignment
    report.p_safe.mean()  # union-attr
    AmortizedSafeQuerier("2d", safe_when="over")  # arg-type
    AmortizedSafeQuerier("2d", acquisition="entropy")  # call-arg
    AmortizedSafeQuerier("2d", guard="on")  # arg-type
    GPQuerier(acquisition="min_unsafe")  # arg-type
    GPSafeQuerier(on_no_safe="ignore")  # arg-type
    RandomQuerier(budget="all")  # arg-type
    learner.run(3, 3)  # arg-type
    ActiveLearner(object(), safe, refit="never")  # arg-type
    RandomQuerier(bounds=object())  # arg-type
    AmortizedSafeQuerier(on_no_safe="ignore")  # arg-type
    held.query(pool=X, fixed=[1.0], return_indices=True)  # call-overload
    held.approach(X).p_safe.mean()  # union-attr


def around(X: Floats, y: Floats) -> None:
    assert_type(ExactGP().fit(X, y).condition(X, y).predict(X), tuple[Floats, Floats])
    assert_type(EnsembleGP(0.3).fit(X, y).variance_reduction(X, X, y), Floats)
    assert_type(AmortizedGP(zero_mean=True).fit(X, y).probability_of_positive(X), Floats)
    as_surrogate("exact").fit(X, y)
    function = Function("mine", [(0, 1), (0, 2)], lambda x: x[:, 0], z_scale=[1.0])
    assert_type(function.bounds, Floats)
    assert_type(branin().output(X), Floats)
    assert_type(branin().initial_points(5, random_state=0), Floats)
    task = Task("mine", "al", FunctionSource(function), 1, 2, 3)
    Task("table", "safe", TableSource([[1.0], [2.0]], [1, 2], [True, False], None), 1, 1, 1)
    trial = task.begin(0)
    assert_type(trial.pool, CandidatePool | None)
    assert_type(run(RandomQuerier(), task, 0), list[Record])
    records, querier = run(RandomQuerier(), "branin", 0, return_querier=True)
    assert_type(querier, RandomQuerier)
    assert_type(get_task("branin").n_features, int)
    read_header(Path("policy.safetensors"))["max_budget"]
    load_policy("2d", safe=True)[0].eval()

    Task("mine", "unsafe", FunctionSource(function), 1, 2, 3)  # arg-type
    FunctionSource(X)  # arg-type
    records[0].error  # attr-defined
    load_policy("2d")  # call-arg
"""


def test_a_type_checker_knows_what_comes_back_and_refuses_wrong_uses(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    # In the root, so that the configuration, and what is known from a run before, are found there.
    command = [sys.executable, "-m", "mypy", str(program)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    refused = re.findall(r"program\.py:(\d+): error: .*\[([\w-]+)\]$", checked.stdout, re.M)
    lines = enumerate(PROGRAM.splitlines(), start=1)
    wrong = [(str(i), line.partition("  # ")[2]) for i, line in lines if "  # " in line]
    assert refused == wrong, checked.stdout + checked.stderr


def public():
    """All functions that are public, and the methods of public classes, by name."""
    found = {}
    listing = sklearn_asal, benchmarks, datasets, displays, policies, surrogates
    members = [getattr(module, name) for module in listing for name in module.__all__]
    members += [one for one in vars(acquisition).values() if is_public_of(acquisition, one)]
    for one in members:
        if inspect.isfunction(one):
            found[f"{one.__module__}.{one.__qualname__}"] = one
        for cls in inspect.getmro(one) if inspect.isclass(one) else ():
            if cls.__module__.startswith("sklearn_asal"):
                found |= methods(cls)
    return found


def is_public_of(module, one):
    is_own = getattr(one, "__module__", None) == module.__name__
    return is_own and not one.__name__.startswith("_")


def methods(cls):
    """Functions behind the public methods and properties of a class, its constructor included."""
    found = {}
    for name, member in vars(cls).items():
        member = getattr(member, "fget", getattr(member, "__func__", member))
        if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
            found[f"{cls.__module__}.{cls.__qualname__}.{name}"] = member
    return found


PUBLIC = public()


def test_the_public_interface_is_found():
    names = {name.removeprefix("sklearn_asal.") for name in PUBLIC}
    assert names > {
        "queriers.base.BaseQuerier.fit",
        "queriers.gp.GPSafeQuerier.__init__",
        "queriers.amortized._PolicyQuerier.from_pretrained",
        "pool.CandidatePool.from_bounds",
        "acquisition.entropy",
        "surrogates.adapters.as_surrogate",
        "datasets.function.Function.n_features",
        "benchmarks.runner.run_cells",
        "policies.checkpoint.save_policy",
    }


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_callable_is_annotated(name):
    signature = inspect.signature(PUBLIC[name])
    missing = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls")
    ]
    assert not missing
    assert signature.return_annotation is not signature.empty
