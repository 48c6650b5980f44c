import pytest
import torch

from sklearn_asal.trainer.presets import Preset
from sklearn_asal.trainer.priors import Uniform
from sklearn_asal.trainer.simulator import _clip_rows, draw_tasks, simulate

SMALL = Preset(max_budget=6, n_init=3, embedding=16, hidden=8, heads=2)
UNCONSTRAINED = SMALL.replace(safe=False, objective="H")


def tasks(preset=SMALL, seed=0, counts=(3, 2, 2), **options):
    return draw_tasks(preset, *counts, torch.Generator().manual_seed(seed), **options)


def network(preset=SMALL):
    torch.manual_seed(0)
    return preset.replace(centre_gain=1.0).network()


def test_batch_make_up():
    batch = tasks()
    assert len(batch) == 12
    assert len(batch.kernel.lengthscale.unique(dim=0)) == 3
    assert len(batch.f.b.unique(dim=0)) == 6
    assert len(batch.q_raw.b.unique(dim=0)) == 6
    assert len(batch.X.unique(dim=0)) == 12
    # Tasks of one function share its kernel.
    for b in batch.f.b.unique(dim=0):
        same = (batch.f.b == b).flatten(1).all(1)
        assert len(batch.kernel.lengthscale[same].unique(dim=0)) == 1


def test_lengths():
    batch = tasks(counts=(300, 1, 1))
    assert batch.n_queries.tolist() == sorted(batch.n_queries.tolist(), reverse=True)
    assert set(batch.n_queries.tolist()) == {1, 2, 3, 4, 5, 6}
    assert set(tasks(SMALL.replace(random_budget=False)).n_queries.tolist()) == {6}
    assert set(tasks(n_queries=4).n_queries.tolist()) == {4}


def test_lengths_do_not_follow_the_kernels():
    batch = tasks(counts=(2, 50, 1))
    first = (batch.kernel.lengthscale == batch.kernel.lengthscale[0]).all(1)
    assert 20 < first[:50].sum() < 80


def test_safe_initial_points():
    batch = tasks(counts=(200, 1, 1))
    assert ((batch.X >= 0.4) & (batch.X <= 0.6)).all()
    # Almost always there are safe points among the fifty rounds.
    assert (batch.Z >= 0).float().mean() > 0.99


def test_safe_region_elsewhere():
    batch = tasks(SMALL.replace(safe_centre=Uniform(0.05, 0.95)), counts=(200, 1, 1))
    centre = batch.safety_mean.centre.float()[:, None]
    assert centre.min() < 0.1
    assert centre.max() > 0.9
    assert ((batch.X - centre).abs() <= 0.1 + 1e-6).all()
    assert ((batch.X >= 0) & (batch.X <= 1)).all()
    assert (batch.Z >= 0).float().mean() > 0.99


@pytest.mark.parametrize("kind", ["reader", "transformer"])
def test_gradient_without_the_way_through_time(kind):
    """Each query moves for its own sake: what it changes later is not counted."""
    policy, batch = network(SMALL.replace(kind=kind)), tasks()
    parameters = list(policy.parameters())

    def score(X):
        # Any function of inputs and measurements.
        return (X.sum(-1) * (batch.f(X) + batch.q(X) ** 2)).sum()

    rollout = simulate(policy, batch, through_time=False)
    result = torch.autograd.grad(score(rollout.X), parameters)
    X = rollout.X.detach().requires_grad_()
    (wanted,) = torch.autograd.grad(score(X), X)
    total = 0.0
    for i, length in enumerate(batch.lengths):
        for t in range(length):
            n = rollout.n_init + t
            seen = (part[i : i + 1, :n].detach() for part in (rollout.X, rollout.Y, rollout.Z))
            x = policy(torch.tensor([length - t]), *seen)
            total = total + (x[0] * wanted[i, n]).sum()
    for ours, expected in zip(result, torch.autograd.grad(total, parameters), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-3)
    through = torch.autograd.grad(score(simulate(policy, batch).X), parameters)
    assert not torch.allclose(through[0], result[0], rtol=1e-2)


@pytest.mark.parametrize("preset", [SMALL, UNCONSTRAINED])
def test_replayed_campaigns_are_the_same(preset):
    """Of a network that can decide all queries at once."""
    policy, batch = network(preset), tasks(preset)
    plain, replayed = (simulate(policy, batch, through_time=way) for way in (True, False))
    assert torch.equal(plain.mask, replayed.mask)
    for name in "XYZ" if batch.safe else "XY":
        ours, expected = (getattr(rollout, name)[plain.mask] for rollout in (replayed, plain))
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def test_initial_measurements_are_noisy_values_of_the_functions():
    batch = tasks(counts=(400, 1, 1))
    residual = (batch.Y - batch.f(batch.X)) / batch.kernel.noise.sqrt()[:, None]
    assert residual.std().item() == pytest.approx(1, abs=0.05)
    assert residual.mean().item() == pytest.approx(0, abs=0.1)


def test_unsafe_points_fill_up():
    # A mean without amplitude and a lower safe share: some tasks have no safe point at the centre.
    batch = tasks(SMALL.replace(mean_variance=Uniform(0.0, 0.0)), counts=(200, 1, 1))
    hopeless = (batch.Z < 0).all(1)
    assert hopeless.any()
    assert batch.X.shape == (200, 3, 2)


def test_unconstrained_initial_points():
    batch = tasks(UNCONSTRAINED, counts=(200, 1, 1))
    assert batch.Z is None
    assert not batch.safe
    assert batch.X.min() < 0.05
    assert batch.X.max() > 0.95


@pytest.mark.parametrize("preset", [SMALL, UNCONSTRAINED])
def test_rollout_equals_one_campaign_at_a_time(preset):
    """alg-asal_training, written out for each task alone, without kept embeddings."""
    batch, policy = tasks(preset), network(preset)
    rollout = simulate(policy, batch)
    for i, T in enumerate(batch.n_queries.tolist()):
        X, Y = batch.X[i : i + 1], batch.Y[i : i + 1]
        Z = batch.Z[i : i + 1] if batch.safe else None
        for t in range(T):
            x = policy(torch.tensor([T - t]), X, Y, Z)[:, None]
            y = batch.f[i : i + 1](x) + batch.y_noise[i, t]
            if batch.safe:
                q = batch.safety_mean[i : i + 1](x) + batch.q_raw[i : i + 1](x)
                Z = torch.cat([Z, q + batch.z_noise[i, t]], 1)
            X, Y = torch.cat([X, x], 1), torch.cat([Y, y], 1)
        n = preset.n_init + T
        torch.testing.assert_close(rollout.X[i, :n], X[0], rtol=0, atol=2e-5)
        torch.testing.assert_close(rollout.Y[i, :n], Y[0], rtol=0, atol=2e-4)
        if batch.safe:
            torch.testing.assert_close(rollout.Z[i, :n], Z[0], rtol=0, atol=2e-4)
        assert rollout.mask[i].tolist() == [True] * n + [False] * (rollout.mask.shape[1] - n)
        assert not rollout.X[i, n:].any()


@pytest.mark.parametrize("kind", ["reader", "transformer"])
def test_gradient_through_time(kind):
    """Against campaigns carried out one at a time, without anything kept."""
    batch, policy = tasks(), network(SMALL.replace(kind=kind))
    rollout = simulate(policy, batch)
    score = (rollout.X.sum(-1) * rollout.Y * rollout.Z).sum()
    expected = 0.0
    for i, T in enumerate(batch.lengths):
        one = slice(i, i + 1)
        X, Y, Z = batch.X[one], batch.Y[one], batch.Z[one]
        for t in range(T):
            x = policy(torch.tensor([T - t]), X, Y, Z)[:, None]
            q = batch.safety_mean[one](x) + batch.q_raw[one](x)
            X = torch.cat([X, x], 1)
            Y = torch.cat([Y, batch.f[one](x) + batch.y_noise[i, t]], 1)
            Z = torch.cat([Z, q + batch.z_noise[i, t]], 1)
        expected = expected + (X.sum(-1) * Y * Z).sum()
    parameters = list(policy.parameters())
    wanted = torch.autograd.grad(expected, parameters)
    for _ in range(2):  # a second backward pass begins anew
        result = torch.autograd.grad(score, parameters, retain_graph=True)
        scale = max(part.norm() for part in wanted).item()
        torch.testing.assert_close(result, wanted, rtol=1e-3, atol=1e-4 * scale)


def test_queried_leaves_initial_points_out():
    batch = tasks()
    rollout = simulate(network(), batch)
    assert torch.equal(rollout.queried.sum(1), batch.n_queries)
    assert not rollout.queried[:, : SMALL.n_init].any()


def test_same_seed_same_tasks():
    first, second = tasks(seed=3), tasks(seed=3)
    assert torch.equal(first.X, second.X)
    assert torch.equal(first.y_noise, second.y_noise)
    assert not torch.equal(first.X, tasks(seed=4).X)


def test_clip_rows():
    gradient = torch.tensor([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0], [0.0, 2.0], [60.0, 80.0]])
    clipped = _clip_rows(gradient, 3.0)
    assert torch.equal(clipped[:4], gradient[:4])
    torch.testing.assert_close(clipped[4], torch.tensor([3.6, 4.8]))


def test_clipping_changes_the_gradient_only():
    batch = tasks()
    gradients = []
    for clip in (None, 0.1):
        policy = network()
        rollout = simulate(policy, batch, clip)
        rollout.Y.square().sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in policy.parameters()]))
    assert gradients[1].norm() < gradients[0].norm()
