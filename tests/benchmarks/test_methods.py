"""Methods with constructor parameters stated in their names."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_asal import GPQuerier, GPSafeQuerier, SafetyGuard
from sklearn_asal.benchmarks.methods import METHODS, SUITES, label_of, make, method_of
from sklearn_asal.benchmarks.results import Results
from sklearn_asal.benchmarks.runner import run_cells
from sklearn_asal.benchmarks.tasks import get_task
from sklearn_asal.surrogates import SparseGP

from ..common import UniformQuerier
from .synthetic import task


@pytest.mark.parametrize("name", METHODS)
def test_a_name_alone_is_the_method(name):
    method = method_of(name)
    assert (method.name, method.stated, method.params) == (name, {}, METHODS[name].params)
    assert label_of(name) == METHODS[name].label


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("asal:guard=True", {"guard": True}),
        ("asal:z_scale=2.0,guard=False", {"guard": False, "z_scale": 2.0}),
        ("asal: z_scale = [0.5, 1] , guard=True", {"guard": True, "z_scale": [0.5, 1]}),
        ("asal:y_loc=-1e-3,z_scale='auto'", {"y_loc": -1e-3, "z_scale": "auto"}),
        ("asal:policy='any',gamma=0.1", {"gamma": 0.1, "policy": "any"}),
        ("safe-gp:surrogate='sparse',gamma=0.5", {"gamma": 0.5, "surrogate": "sparse"}),
        ("safe-svgp:gamma=0.5", {"gamma": 0.5}),
        ("aal:policy=None", {"policy": None}),
    ],
)
def test_stated_parameters_reach_the_querier(name, expected):
    case = get_task("simionescu")
    params, plain = (make(n, case).get_params() for n in (name, name.partition(":")[0]))
    assert {key: params[key] for key in expected} == expected
    assert {k: v for k, v in params.items() if k not in expected} == {
        k: v for k, v in plain.items() if k not in expected
    }


@pytest.mark.parametrize("kind", ["agp", "pfn", "tabpfn"])
def test_amortized_models_follow_the_protocol_of_the_paper(kind):
    for name in (kind, f"safe-{kind}"):
        safe = METHODS[name].safe
        querier = make(name, get_task("simionescu" if safe else "branin"))
        params = querier.get_params()
        assert type(querier) is (GPSafeQuerier if safe else GPQuerier)
        assert (params["acquisition"], params["n_candidates"]) == ("entropy", 5000)
        assert params["surrogate"] == {"agp": "amortized"}.get(kind, kind)
        if safe:
            assert (params["gamma"], params["guard"]) == (0.05, False)
        assert METHODS[name].package == ("tabpfn" if kind == "tabpfn" else "")
        assert not any(name in suite for suite in SUITES.values())


@pytest.mark.parametrize("name", ["agp", "safe-agp", "pfn", "safe-pfn"])
def test_campaigns_of_amortized_models(tmp_path, name):
    case = "simionescu" if METHODS[name].safe else "branin"
    results = run_cells(tmp_path, [case], [name], 1, n_queries=2, progress=False)
    assert not results.failures
    assert len(results.records[case, name, 0]) == 2


def test_a_package_that_is_not_there_fails_the_cells(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tabpfn", None)
    results = run_cells(tmp_path, ["branin"], ["tabpfn", "random"], 1, n_queries=2, progress=False)
    assert list(results.records) == [("branin", "random", 0)]
    assert "pip install 'sklearn-asal[tabpfn]'" in results.failures["branin", "tabpfn", 0]


def test_guards_and_surrogates_may_be_stated():
    name = "asal: z_scale=2, guard=SafetyGuard( gamma = .02,n_nearest=5 )"
    assert method_of(name).name == "asal:guard=SafetyGuard(gamma=0.02, n_nearest=5),z_scale=2"
    guard = make(name, get_task("simionescu")).guard
    assert isinstance(guard, SafetyGuard)
    assert (guard.gamma, guard.n_nearest) == (0.02, 5)
    surrogate = make("safe-gp:surrogate=SparseGP(n_inducing=7)", get_task("simionescu")).surrogate
    assert (type(surrogate), surrogate.n_inducing) == (SparseGP, 7)


def test_what_the_task_asks_for_stays(data_home):
    """Unless it is stated."""
    case = get_task("engine", data_home)
    surrogate = make("safe-svgp:z_scale=2", case).surrogate
    assert isinstance(surrogate, SparseGP)
    assert surrogate.n_inducing == 20
    assert make("safe-svgp:surrogate='exact'", case).surrogate == "exact"


PARAMS = {
    "guard": st.booleans(),
    "z_scale": st.floats(0.1, 10) | st.lists(st.integers(1, 9)),
    "gamma": st.none() | st.floats(0.01, 1),
    "policy": st.text(max_size=5),
}


@given(stated=st.fixed_dictionaries({}, optional=PARAMS), order=st.randoms())
def test_all_spellings_have_one_name(stated, order):
    words = [f"{param} = {value!r}" for param, value in stated.items()]
    order.shuffle(words)
    method = method_of("asal" + ":" * bool(words) + ", ".join(words))
    assert method.stated == stated
    assert method_of(method.name) == method
    assert label_of(method.name).startswith("ASAL")
    assert sorted(method.stated) == list(method.stated)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("asl:guard=True", "methods must be out of asal, .*also as name:param=value"),
        (":guard=True", "methods must be out of asal"),
        *(
            (f"asal:{text}", "must be written name:param=value,.*strings in quotes")
            for text in (
                "",
                "guard",
                "True",
                "guard=",
                "guard=yes",
                "policy=any",
                "guard=True,guard=False",
                "**{'guard': True}",
                "guard=True)",
                "guard=True)(z_scale=2",
                "guard=__import__('os')",
                "z_scale=1/2",
                "z_scale=2)+f(guard=True",
                "guard=True;z_scale=2",
                "guard=True:z_scale=2",
                "guard=SafetyGuard",
                "guard=SafetyGuard(0.1)",
                "guard=SafetyGuard(**{'gamma': 0.1})",
                "guard=SafetyGuard(gama=0.1)",
                "guard=SafetyGuard(gamma=0.1)()",
                "guard=SafetyGuard(gamma=SafetyGuard())",
                "guard=open('x')",
                "guard=sklearn_asal.SafetyGuard()",
            )
        ),
        (
            "asal:guards=True",
            r"'asal:guards=True': AmortizedSafeQuerier has no parameter 'guards'; it has .*guard,",
        ),
        ("random:guard=True", "RandomQuerier has no parameter 'guard'"),
        ("asal:budget=3", "budget is set by the task; leave it out"),
        ("asal:safety_threshold=3", "safety_threshold is set by the task"),
    ],
)
def test_what_is_no_variant(tmp_path, name, message):
    with pytest.raises(ValueError, match=message):
        run_cells(tmp_path / "new", [task()], [name])
    assert not (tmp_path / "new").exists()


def test_names_of_variants_are_taken(tmp_path):
    with pytest.raises(ValueError, match="'asal:mine' is the name of a method of this package"):
        run_cells(tmp_path, [task()], {"asal:mine": UniformQuerier()})


def test_runs_of_variants(tmp_path, policy):
    options = {"tasks": ["simionescu"], "seeds": 1, "n_queries": 2}
    names = ["asal:z_scale=2, guard=False", "asal:guard=False,z_scale=2", "asal"]
    run_cells(tmp_path, methods=names, policy=policy(True), **options)
    records = Results(tmp_path).records
    assert set(records) == {
        ("simionescu", "asal", 0),
        ("simionescu", "asal:guard=False,z_scale=2", 0),
    }
    # Finished variants of a method with a policy bind the folder to it.
    (tmp_path / "settings.json").write_text(
        json.dumps(Results(tmp_path).settings | {"policy": "0"}), encoding="utf-8"
    )
    with pytest.raises(ValueError, match="holds results with policy="):
        run_cells(tmp_path, methods=["asal:z_scale=0.5"], **options)


def test_a_bad_value_fails_its_own_cells(tmp_path):
    options = {"tasks": ["simionescu"], "seeds": 1, "n_queries": 2}
    results = run_cells(tmp_path, methods=["asal:z_scale=-1.0", "asal:guard=True"], **options)
    assert list(results.records) == [("simionescu", "asal:guard=True", 0)]
    assert "z_scale" in results.failures["simionescu", "asal:z_scale=-1.0", 0]


@pytest.mark.parametrize("name", ["aline", "dad"])
def test_baselines_have_the_policy_for_the_number_of_features(name):
    assert make(name, get_task("branin")).policy == f"{name}-2d"
    assert make(f"{name}:policy='2d'", get_task("branin")).policy == "2d"
    assert name not in {one for suite in SUITES.values() for one in suite}


def test_a_number_of_features_without_a_policy_fails_its_cell(tmp_path):
    results = run_cells(tmp_path, ["sinus"], ["dad"], seeds=1, n_queries=2)
    assert not results.records
    (failure,) = results.failures.values()
    assert "policy 'dad-1d' is neither a shipped unconstrained policy nor a file" in failure
    assert "of other methods: " in failure
    assert "'dad-2d'" in failure
