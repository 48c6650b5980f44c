import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import qmc

from sklearn_asal.policies.layers import bounded
from sklearn_asal.policies.networks import build
from sklearn_asal.policies.transformer import AttentionLayer

OUTPUTS = ["clip", "tanh"]
KINDS = ["reader", "transformer"]
both_kinds = pytest.mark.parametrize("kind", KINDS)


def data(n_features, batch, n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand((batch, n, n_features), generator=generator)
    y, z = torch.randn((2, batch, n), generator=generator)
    budget = torch.randint(1, 41, (batch,), generator=generator)
    return budget, X, y, z


def network(kind, n_features=2, safe=True, **options):
    torch.manual_seed(1)
    # A gain of one, or every answer would be close to the centre.
    architecture = {"n_features": n_features, "safe": safe, "kind": kind, **options}
    return build(architecture, centre_gain=1.0).eval()


@pytest.mark.parametrize("masked", [False, True])
def test_attention_layer_equals_torch(masked):
    torch.manual_seed(0)
    ours = AttentionLayer(32, 4).double()
    theirs = torch.nn.TransformerEncoderLayer(32, 4, 32, dropout=0.0, batch_first=True).double()
    pairs = {
        "qkv.weight": "self_attn.in_proj_weight",
        "qkv.bias": "self_attn.in_proj_bias",
        "out": "self_attn.out_proj",
        "ff1": "linear1",
        "ff2": "linear2",
        "norm1": "norm1",
        "norm2": "norm2",
    }
    state = {}
    for name, value in ours.state_dict().items():
        module = name.rpartition(".")[0]
        state[pairs.get(name) or name.replace(module, pairs[module])] = value
    theirs.load_state_dict(state)
    tokens = torch.randn(3, 7, 32, dtype=torch.float64)
    mask = torch.ones(3, 7, dtype=torch.bool)
    if masked:
        mask[1, 4:] = False
        mask[2, 1:] = False
    expected = theirs(tokens, src_key_padding_mask=~mask if masked else None)
    result = ours(tokens, ours.project(tokens), mask if masked else None)
    torch.testing.assert_close(result[mask], expected[mask], rtol=1e-10, atol=1e-12)


@both_kinds
@pytest.mark.parametrize("safe", [True, False])
@pytest.mark.parametrize("budget", [True, False])
@pytest.mark.parametrize("n_features", [1, 2, 7])
def test_parts_can_be_removed(kind, n_features, safe, budget):
    policy = network(kind, n_features, safe, budget=budget)
    assert policy(*data(n_features, 4, 3)).shape == (4, n_features)
    names = {name.partition(".")[0] for name in policy.state_dict()}
    if kind == "transformer":
        assert ("safety_history" in names) == safe
    assert ("budget" in names) == budget


@both_kinds
def test_safety_matters_only_to_a_safe_policy(kind):
    budget, X, y, z = data(2, 2, 5)
    assert not torch.allclose(network(kind)(budget, X, y, z), network(kind)(budget, X, y, z + 1))
    unconstrained = network(kind, safe=False)
    assert torch.equal(unconstrained(budget, X, y, z), unconstrained(budget, X, y, z + 1))


@both_kinds
def test_budget_matters_only_with_its_encoder(kind):
    budget, X, y, z = data(2, 2, 5)
    assert not torch.allclose(network(kind)(budget, X, y, z), network(kind)(budget + 5, X, y, z))
    fixed = network(kind, budget=False)
    assert torch.equal(fixed(budget, X, y, z), fixed(budget + 5, X, y, z))


@both_kinds
@settings(deadline=None, max_examples=25)
@given(n=st.integers(1, 12), seed=st.integers(0, 1000), output=st.sampled_from(OUTPUTS))
def test_order_is_of_no_consequence(kind, n, seed, output):
    budget, X, y, z = data(2, 3, n, seed)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(n))
    policy = network(kind, output=output)
    torch.testing.assert_close(
        policy(budget, X, y, z),
        policy(budget, X[:, order], y[:, order], z[:, order]),
        rtol=0,
        atol=1e-5,
    )


@both_kinds
@settings(deadline=None, max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    seed=st.integers(0, 1000),
    pooling=st.sampled_from(["sqrt", "sum"]),
)
def test_masked_batch_equals_loop(kind, lengths, seed, pooling):
    budget, X, y, z = data(2, len(lengths), max(lengths), seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    policy = network(kind, pooling=pooling)
    batched = policy(budget, X, y, z, mask)
    for i, n in enumerate(lengths):
        single = policy(budget[i : i + 1], X[i : i + 1, :n], y[i : i + 1, :n], z[i : i + 1, :n])
        torch.testing.assert_close(batched[i : i + 1], single, rtol=0, atol=1e-5)


@both_kinds
def test_padding_is_never_read(kind):
    budget, X, y, z = data(2, 2, 6)
    mask = torch.arange(6) < torch.tensor([[4], [6]])
    policy = network(kind)
    expected = policy(budget, X, y, z, mask)
    X[0, 4:], y[0, 4:], z[0, 4:] = 7.0, -5.0, 3.0
    torch.testing.assert_close(policy(budget, X, y, z, mask), expected, rtol=0, atol=1e-6)


@both_kinds
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_inside_the_unit_cube(kind, output, scale):
    budget, X, y, z = data(3, 50, 8)
    result = network(kind, 3, output=output)(budget, X, y * scale, z * scale)
    assert ((result >= 0) & (result <= 1)).all()


@both_kinds
def test_tokens_can_be_kept(kind):
    budget, X, y, z = data(2, 3, 6)
    policy = network(kind)
    early = policy.tokens(X[:, :4], y[:, :4], z[:, :4])
    late = policy.tokens(X[:, 4:], y[:, 4:], z[:, 4:])
    tokens = tuple(torch.cat(pair, 1) for pair in zip(early, late, strict=True))
    torch.testing.assert_close(policy.decide(budget, tokens), policy(budget, X, y, z))


@both_kinds
def test_starts_near_the_centre(kind):
    torch.manual_seed(0)
    result = build({"n_features": 7, "kind": kind})(*data(7, 100, 20))
    assert (result - 0.5).abs().max() < 0.25


@both_kinds
@pytest.mark.parametrize("name", ["output", "pooling"])
def test_unknown_choice(kind, name):
    with pytest.raises(ValueError, match=f"{name} must be one of"):
        build({"n_features": 2, "kind": kind, name: "relu"})


def test_one_more_observation_matters():
    """Even among many: the sum over a set must not drown one of few."""
    budget, X, y, z = data(2, 20, 5)
    policy = network("reader")
    few, more = policy(budget, X[:, :4], y[:, :4], z[:, :4]), policy(budget, X, y, z)
    assert (few - more).abs().mean() > 1e-3


@pytest.mark.parametrize("safe", [True, False])
@pytest.mark.parametrize("pooling", ["sqrt", "sum"])
@pytest.mark.parametrize("n_init", [1, 4])
@pytest.mark.parametrize("lead", [True, False])
def test_replay_equals_the_decisions_one_by_one(n_init, pooling, safe, lead):
    _, X, y, z = data(2, 3, 9)
    policy = network("reader", safe=safe, pooling=pooling, lead=lead).double()
    X, y, z = X.double(), y.double(), z.double()
    T = 9 - n_init + 1
    n_queries = torch.tensor([T, T, T - 1])
    together = policy.replay(n_queries, n_init, T, policy.tokens(X, y, z))
    for t in range(T):
        n, going = n_init + t, n_queries > t
        one = policy(n_queries - t, X[:, :n], y[:, :n], z[:, :n])
        torch.testing.assert_close(together[going, t], one[going], rtol=0, atol=1e-10)


def test_copies_of_a_history_count_by_their_root():
    """k copies of each observation attend to the same, so the pooled embedding grows by sqrt(k)."""
    _, X, y, _ = data(2, 3, 4)
    encoder = network("transformer", safe=False).history
    once, thrice = (encoder(encoder.tokens(X.repeat(1, k, 1), y.repeat(1, k))) for k in (1, 3))
    torch.testing.assert_close(thrice, 3**0.5 * once, rtol=1e-4, atol=1e-5)


@both_kinds
def test_gradient_is_projected_onto_the_cube(kind):
    """Whatever the answer, descent goes where the cube lets it, and is nowhere stuck."""
    for target, moves in ((0.5, True), (2.0, False)):
        policy = build({"n_features": 1, "safe": False, "kind": kind})
        head = policy.decision[-1] if kind == "transformer" else policy.head
        torch.nn.init.constant_(head.bias, 3.0)
        budget, X, y, _ = data(1, 4, 3)
        x = policy(budget, X, y)
        assert (x == 1).all()
        (x - target).square().sum().backward()
        gradient = head.bias.grad
        # Half of 2 (1 - target) from each of four campaigns.
        assert gradient.item() == pytest.approx(4 * (1 - target) if moves else 0.0)


@both_kinds
def test_lags_bind_the_next_input(kind):
    lags = ((1, 2, 0.1), (0, 1, 0.02))
    bound, free = network(kind, 3, lags=lags), network(kind, 3)
    bound.load_state_dict(free.state_dict())
    # A head of large weights asks for all corners.
    for policy in (bound, free):
        head = policy.decision[-1] if kind == "transformer" else policy.head
        torch.nn.init.normal_(head.weight, 0.0, 3.0, torch.Generator().manual_seed(0))
    inputs = data(3, 200, 5)
    x, wanted = bound(*inputs), free(*inputs)
    expected = wanted.clone()
    expected[:, 1] = expected[:, 1].clamp(wanted[:, 2] - 0.1, wanted[:, 2] + 0.1)
    expected[:, 0] = expected[:, 0].clamp(expected[:, 1] - 0.02, expected[:, 1] + 0.02)
    torch.testing.assert_close(x, expected)
    assert (x != wanted).any(dim=0).tolist() == [True, True, False]
    assert ((x >= 0) & (x <= 1)).all()


def test_gradient_is_projected_onto_the_reach_of_a_lag():
    """At its end a lagged feature moves with the earlier one, and back by itself."""
    h = torch.tensor([[0.8, 0.0]], requires_grad=True)  # asks for 0.9, 0.5
    architecture = {"output": "clip", "lags": ((0, 1, 0.1),)}
    x = bounded(h, architecture)
    torch.testing.assert_close(x.detach(), torch.tensor([[0.6, 0.5]]))
    (up,) = torch.autograd.grad(-x[0, 0], h, retain_graph=True)
    (down,) = torch.autograd.grad(x[0, 0], h)
    assert up.tolist() == [[0.0, -0.5]]
    assert down.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("lags", "message"),
    [
        (((0, 3, 0.1),), "different features of 3"),
        (((1, 1, 0.1),), "different features of 3"),
        (((0, 1, 0.1), (1, 2, 0.1)), "before others follow"),
        (((0, 1, 0.0),), "step of a lag"),
    ],
)
def test_bad_lags(lags, message):
    with pytest.raises(ValueError, match=message):
        network("reader", 3, lags=lags)


@pytest.mark.parametrize(("safe", "reach"), [(True, 0.2), (False, 1.0)])
def test_untrained_policy_with_a_lead_draws_the_sequence(safe, reach):
    torch.manual_seed(0)
    kind = {"n_features": 3, "safe": safe, "kind": "reader", "lead": True}
    policy, n = build(kind, lead_reach=reach), 16
    x = [policy(*data(3, 1, known))[0].detach() for known in range(1, 1 + n)]
    sobol = torch.as_tensor(qmc.Sobol(3, scramble=False).random(2 * n)[1 : 1 + n])
    torch.testing.assert_close(
        torch.stack(x).double(), 0.5 + reach * (sobol - 0.5), rtol=0, atol=0.1
    )


def test_lead_is_for_the_reader():
    with pytest.raises(ValueError, match="lead is for kind='reader'"):
        network("transformer", lead=True)
