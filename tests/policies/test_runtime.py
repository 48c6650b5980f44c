"""Runtimes compute what the network of the training computes."""

import copy
import os
import signal
import threading
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.policies import load_policy, reader_runtime, save_policy, shipped
from sklearn_asal.policies.architecture import N_ANCHORS, check_weights, complete
from sklearn_asal.policies.networks import build
from sklearn_asal.policies.reader_runtime import ReaderRuntime
from sklearn_asal.policies.registry import load_runtime
from sklearn_asal.policies.runtime import Tokens
from sklearn_asal.policies.torch_runtime import TorchRuntime

RUNTIMES = {"reader": ReaderRuntime, "transformer": TorchRuntime}
KINDS = tuple(RUNTIMES)
some = settings(max_examples=30, deadline=None, derandomize=True)


def pair(dtype=np.float64, n_features=2, seed=0, gain=2.0, kind="reader", **options):
    """A network of random weights and its runtime."""
    torch.manual_seed(seed)
    options = {"embedding": 16, "hidden": 24, "heads": 2, "kind": kind, **options}
    network = build({"n_features": n_features, **options}, centre_gain=gain).eval().double()
    with torch.no_grad():  # also what starts at zero or one
        for parameter in network.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    return network, RUNTIMES[kind](network.architecture, weights, dtype=dtype)


def data(n_features, B, n, seed=0):
    rng = np.random.default_rng(seed)
    y, z = rng.standard_normal((2, B, n))
    return rng.integers(1, 41, B).astype(float), rng.random((B, n, n_features)), y, z


def asked(network, budget, X, y, z, mask=None):
    parts = [torch.tensor(part) for part in (budget, X, y, z)]
    with torch.no_grad():
        return network(*parts, None if mask is None else torch.tensor(mask)).numpy()


@some
@given(
    kind=st.sampled_from(KINDS),
    n_features=st.integers(1, 7),
    safe=st.booleans(),
    budget=st.booleans(),
    output=st.sampled_from(["clip", "tanh"]),
    pooling=st.sampled_from(["sqrt", "sum"]),
    layers=st.integers(1, 3),
    heads=st.sampled_from([1, 2, 4]),
    standardize=st.booleans(),
    max_budget=st.sampled_from([10, 40]),
    lagged=st.booleans(),
    lead=st.booleans(),
    B=st.integers(1, 3),
    n=st.integers(1, 12),
    seed=st.integers(0, 1000),
)
def test_same_function(kind, n_features, safe, budget, lagged, lead, B, n, seed, **options):
    options["lead"] = lead and kind == "reader"
    options["lags"] = tuple((i + 1, i, 0.05) for i in range(n_features - 1)) if lagged else ()
    for dtype, tolerance in ((np.float64, 1e-8), (np.float32, 2e-5)):
        network, runtime = pair(
            dtype, n_features, seed, 0.3, kind, safe=safe, budget=budget, **options
        )
        inputs = data(n_features, B, n, seed)
        result = runtime(*inputs)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, asked(network, *inputs), rtol=0, atol=tolerance)


@pytest.mark.parametrize("pooling", ["sqrt", "sum"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 150, N_ANCHORS - 1, N_ANCHORS, N_ANCHORS + 1])
def test_anchors_follow_the_number_of_observations(n, pooling):
    """The network's own loop over the sequence, one campaign at a time and many at once."""
    network, runtime = pair(n_features=3, lead=True, pooling=pooling)
    left, X, y, z = data(3, 2, n)
    expected = asked(network, left, X, y, z)
    for i in range(2):
        tokens = runtime.tokens(runtime.rows(X[i], y[i], z[i]))
        alone = runtime.decide(left[i], tokens)
        np.testing.assert_allclose(alone, expected[i], rtol=0, atol=1e-8)
    together = runtime.decide_many(left, runtime.rows(X, y, z))
    np.testing.assert_allclose(together, expected, rtol=0, atol=1e-8)
    # An anchor further on or back would be noticed.
    lead = network.lead.abs().min().item()
    steps = np.abs(np.diff(network.anchors.numpy()[[n % N_ANCHORS - 1, n % N_ANCHORS]], axis=0))
    assert 0.5 * lead * steps.max() > 1e-3


def test_anchors_in_a_padded_batch():
    network, runtime = pair(n_features=2, lead=True)
    lengths = np.array([1, 5, 12, 12, 45])
    left, X, y, z = data(2, 5, 45)
    mask = np.arange(45) < lengths[:, None]
    result = runtime.decide_many(left, runtime.rows(X, y, z), mask)
    for i, n in enumerate(lengths):
        one = (part[i : i + 1, :n] for part in (X, y, z))
        expected = asked(network, left[i : i + 1], *one)
        np.testing.assert_allclose(result[i], expected[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("safe", "name"),
    [(safe, name) for safe in (True, False) for name in sorted(shipped(safe)) if name != "any"],
)
def test_shipped_policies_answer_as_their_networks(safe, name):
    network, header = load_policy(name, safe=safe)
    network = copy.deepcopy(network).double()
    weights = {key: value.numpy() for key, value in network.state_dict().items()}
    exact = ReaderRuntime(header["architecture"], weights, dtype=np.float64)
    runtime, _ = load_runtime(name, safe=safe)
    for n in (1, 5, 45, 150):
        left, X, y, z = data(runtime.n_features, 3, n)
        expected = asked(network, left, X, y, z)
        for ours, tolerance in ((exact, 1e-10), (runtime, 5e-6)):
            np.testing.assert_allclose(ours(left, X, y, z), expected, rtol=0, atol=tolerance)
            for i in range(3):
                tokens = ours.tokens(ours.rows(X[i], y[i], z[i]))
                alone = ours.decide(left[i], tokens)
                np.testing.assert_allclose(alone, expected[i], rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@some
@given(
    n=st.integers(1, 60),
    layers=st.integers(1, 3),
    heads=st.sampled_from([1, 2, 4]),
    budget=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_from_tokens_as_from_raw_observations(kind, n, seed, **options):
    """Of one campaign and of many at once, which are not computed in the same way."""
    for dtype, tolerance in ((np.float64, 1e-10), (np.float32, 2e-5)):
        _, runtime = pair(dtype, kind=kind, seed=seed, **options)
        left, X, y, z = data(2, 3, n, seed)
        together = runtime(left, X, y, z)
        for i in range(3):
            tokens = runtime.tokens(runtime.rows(X[i], y[i], z[i]))
            alone = runtime.decide(left[i], tokens)
            assert alone.dtype == dtype
            np.testing.assert_allclose(alone, together[i], rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("masked", [False, True])
def test_floating_point_errors_of_the_host_are_none_of_a_runtime_s(size, masked, kind):
    """Underflow of exp, for one."""
    inputs = data(2, 3, 12)
    mask = np.arange(12) < np.array([[12], [3], [1]]) if masked else None

    def answers():
        _, runtime = pair(np.float32, kind=kind, gain=5.0)
        left, X, y, z = inputs[0], inputs[1], inputs[2] * size, inputs[3] * size
        tokens = runtime.tokens(runtime.rows(X[0], y[0], z[0], 1e6))
        return runtime(left, X, y, z, mask), runtime.decide(left[0], tokens)

    expected = answers()
    with np.errstate(all="raise"):
        result = answers()
    assert all(map(np.array_equal, result, expected))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
def test_one_campaign_of_huge_numbers(size, kind):
    _, runtime = pair(np.float32, kind=kind)
    left, X, y, z = data(2, 1, 6)
    expected = runtime(left, X, y * size, z * size)
    with np.errstate(all="raise", under="ignore"):
        tokens = runtime.tokens(runtime.rows(X[0], y[0] * size, z[0] * size))
        result = runtime.decide(left[0], tokens)
    # The last digits of huge numbers are lost in float32.
    np.testing.assert_allclose(result, expected[0], rtol=0, atol=1e-2 if size > 1e2 else 1e-3)


def test_embedding_in_chunks(monkeypatch):
    _, runtime = pair()
    inputs = data(2, 3, 7)
    expected = runtime(*inputs)
    monkeypatch.setattr(reader_runtime, "_CHUNK", 4)
    np.testing.assert_allclose(runtime(*inputs), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@some
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5), seed=st.integers(0, 1000))
def test_masked_batch_equals_loop(kind, lengths, seed):
    _, runtime = pair(kind=kind)
    budget, X, y, z = data(2, len(lengths), max(lengths), seed)
    mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    batched = runtime(budget, X, y, z, mask)
    for i, n in enumerate(lengths):
        single = runtime(budget[i], X[i : i + 1, :n], y[i : i + 1, :n], z[i : i + 1, :n])
        np.testing.assert_allclose(batched[i : i + 1], single, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@some
@given(n=st.integers(1, 12), seed=st.integers(0, 1000))
def test_order_is_of_no_consequence(kind, n, seed):
    _, runtime = pair(kind=kind)
    budget, X, y, z = data(2, 2, n, seed)
    order = np.random.default_rng(seed).permutation(n)
    permuted = runtime(budget, X[:, order], y[:, order], z[:, order])
    np.testing.assert_allclose(permuted, runtime(budget, X, y, z), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
def test_scores_beyond_the_range_of_exp(size, masked, kind):
    network, runtime = pair(np.float32, kind=kind)
    budget, X, y, z = data(2, 3, 6)
    mask = np.arange(6) < np.array([[6], [3], [1]]) if masked else None
    with np.errstate(all="raise", under="ignore"):
        result = runtime(budget, X, y * size, z * size, mask)
    expected = asked(network, budget, X, y * size, z * size, mask)
    # The last digits of huge numbers are lost in float32.
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-2 if size > 1e2 else 1e-3)


def test_any_number_of_budgets_is_answered():
    network, runtime = pair()
    _, X, y, z = data(2, 1, 3)
    for budget in np.linspace(1, 40, 1500):
        result = runtime(float(budget), X, y, z)
    np.testing.assert_allclose(result, asked(network, [40.0], X, y, z), rtol=0, atol=1e-8)
    assert len(runtime._budgets) <= 1024


@pytest.mark.parametrize("kind", KINDS)
@some
@given(steps=st.lists(st.integers(1, 8), min_size=1, max_size=6), seed=st.integers(0, 1000))
def test_kept_tokens_are_those_of_the_rows(kind, steps, seed):
    """Whatever lists it saw before: longer, shorter, or with another beginning."""
    _, runtime = pair(kind=kind)
    rng = np.random.default_rng(seed)
    tokens, pool = Tokens(runtime), runtime.rows(rng.random((30, 2)), *rng.random((2, 30)))
    for n in steps:
        first = rng.integers(3)
        rows = pool[:, first : first + n]
        np.testing.assert_allclose(tokens(rows), runtime.tokens(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@some
@given(steps=st.lists(st.integers(1, 40), min_size=1, max_size=4), seed=st.integers(0, 1000))
def test_kept_tokens_do_not_depend_on_how_many_came_at_a_time(kind, steps, seed):
    _, runtime = pair(kind=kind, dtype=np.float32)
    rng, tokens, n = np.random.default_rng(seed), Tokens(runtime), sum(steps)
    rows = runtime.rows(rng.random((n, 2)), *rng.random((2, n)))
    for n in np.cumsum(steps):
        found = tokens(rows[:, :n])
    np.testing.assert_array_equal(found, Tokens(runtime)(rows))
    np.testing.assert_allclose(found, runtime.tokens(rows), rtol=0, atol=1e-5)
    last = runtime.tokens(rows[:, -1:])
    np.testing.assert_array_equal(found[:, -1:], last)


@pytest.mark.parametrize("kind", KINDS)
def test_known_tokens_are_not_computed_again(kind, monkeypatch):
    _, runtime = pair(kind=kind)
    rng, seen = np.random.default_rng(0), []
    rows = runtime.rows(rng.random((40, 2)), *rng.random((2, 40)))
    compute = runtime.tokens_singly

    def counted(new):
        seen.append(new.shape[1])
        return compute(new)

    monkeypatch.setattr(runtime, "tokens_singly", counted)
    tokens = Tokens(runtime)
    for n in (5, 6, 6, 8, 40, 7):
        tokens(rows[:, :n])
    assert seen == [5, 1, 2, 32]
    changed = rows.copy()
    changed[0, 4, 2] += 1.0
    tokens(changed)
    assert seen[-1] == 36


@pytest.mark.parametrize("kind", KINDS)
def test_threads_share_a_runtime(kind):
    _, runtime = pair(kind=kind)
    questions = [data(2, 1, n, seed=n) for n in range(1, 9)]
    expected = [runtime(*question) for question in questions]
    wrong = []

    def work(offset):
        for i in range(40):
            j = (i + offset) % 8
            if not np.array_equal(runtime(*questions[j]), expected[j]):
                wrong.append(j)

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_forked_process_answers(kind):
    """Whatever the threads of its parent were about."""
    _, runtime = pair(kind=kind)
    question, done = data(2, 1, 9), threading.Event()
    expected = runtime(*question)

    def work():
        while not done.is_set():
            runtime(*question)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                tokens = Tokens(runtime)(runtime.rows(*(part[0] for part in question[1:])))
                same = np.allclose(runtime.decide(question[0][0], tokens), expected[0])
                os._exit(0 if same and np.array_equal(runtime(*question), expected) else 1)
            deadline, ended = time.monotonic() + 60, (0, 0)
            while ended == (0, 0) and time.monotonic() < deadline:
                ended = os.waitpid(child, os.WNOHANG)
                time.sleep(0.01)
            if ended == (0, 0):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            assert ended == (child, 0)
    finally:
        done.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_all_runtimes_have(kind, dtype):
    for safe in (True, False):
        _, runtime = pair(dtype, n_features=3, kind=kind, safe=safe)
        assert (runtime.n_features, runtime.safe, runtime.dtype) == (3, safe, dtype)
        assert runtime.batch > 0
        rows = runtime.rows(np.ones((4, 3)), np.full(4, 1e9), np.full(4, -1e9), 1e6)
        assert rows.dtype == dtype
        assert np.abs(rows).max() == 1e6
        tokens = runtime.tokens(rows)
        assert (tokens.shape, tokens.dtype) == ((1, 4, runtime.token_width), dtype)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_campaigns_by_any_kind_of_network(tmp_path, kind):
    torch.manual_seed(0)
    options = {"n_features": 2, "kind": kind, "embedding": 16, "hidden": 24, "heads": 2}
    network, path = build(options, centre_gain=2.0).eval(), tmp_path / "policy.safetensors"
    save_policy(network, path)
    rng = np.random.default_rng(0)
    X, y, z = rng.random((3, 2)), rng.standard_normal(3), rng.random(3)
    querier = AmortizedSafeQuerier(path, budget=6, guard=False).fit(X, y, z)
    histories, points = [], []
    for left in range(6, 0, -1):
        parts = (torch.tensor(part, dtype=torch.float32)[None] for part in (X, y, z))
        expected = network(torch.tensor([float(left)]), *parts)
        point = querier.query()
        np.testing.assert_allclose(point, expected.detach(), rtol=0, atol=1e-6)
        histories.append((X, y, z))
        points.append(point[0])
        new = rng.standard_normal(2)
        querier.tell(point, *new)
        X, y, z = np.vstack([X, point]), np.append(y, new[0]), np.append(z, new[1])
    together = querier.propose_many(histories, budgets=list(range(6, 0, -1)))
    np.testing.assert_allclose(together, points, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "bias"), [("reader", "head.bias"), ("transformer", "decision.2.bias")]
)
def test_weights_that_do_not_fit(kind, bias):
    network, _ = pair(kind=kind)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    architecture = complete(network.architecture)
    check_weights(architecture, weights)
    with pytest.raises(ValueError, match=rf"{bias}: shape None, expected \(2,\)"):
        check_weights(architecture, {k: v for k, v in weights.items() if k != bias})
    with pytest.raises(ValueError, match=r"more: shape \(3,\), expected None"):
        check_weights(architecture, {**weights, "more": np.zeros(3)})


def test_architectures_that_make_no_network():
    assert complete({"n_features": 2})["hidden"] == 512
    assert complete({"n_features": 2, "kind": "reader"})["hidden"] == 256
    with pytest.raises(TypeError, match="depth"):
        complete({"n_features": 2, "depth": 3})
    with pytest.raises(ValueError, match="output must be"):
        complete({"n_features": 2, "output": "relu"})
    with pytest.raises(ValueError, match="3 heads do not divide 128"):
        complete({"n_features": 2, "heads": 3})
