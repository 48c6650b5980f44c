"""ALINE's training: campaigns, the gradient of REINFORCE, runs that go on."""

import csv
import itertools

import numpy as np
import pytest
import torch

from sklearn_asal.policies.aline import log_density
from sklearn_asal.policies.registry import load_runtime
from sklearn_asal.trainer import aline
from sklearn_asal.trainer.aline import (
    RECIPES,
    ALINETrainer,
    advantages,
    draw_campaigns,
    policy_loss,
    run_campaigns,
    validate,
)
from sklearn_asal.trainer.loop import TrainingError

TINY = RECIPES["aline-2d"].replace(
    max_budget=3,
    steps=6,
    first_steps=3,
    n_tasks=4,
    n_functions=2,
    n_rollouts=2,
    n_targets=5,
    n_candidates=4,
    n_validation=6,
    embedding=8,
    hidden=8,
    heads=2,
    layers=2,
    components=2,
)


@pytest.fixture
def often(monkeypatch):
    """Validate at each step."""
    monkeypatch.setattr(aline, "_EVERY", (1, 1))


def campaigns(n=3, n_candidates=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    drawn = draw_campaigns(TINY, n, 2, generator, n_candidates)
    return aline.Campaigns(*(part.double() for part in vars(drawn).values()))


def network(seed=0):
    torch.manual_seed(seed)
    made = TINY.network().double()
    with torch.no_grad():
        made.score[2].weight.mul_(5)  # far from even probabilities
    return made


def in_turn(*order):
    """Choose these candidates, one after the other, in every campaign."""
    left = list(order)
    return lambda log_p: torch.full((len(log_p),), left.pop(0))


def test_campaigns_measure_what_they_choose():
    c, net = campaigns(), network()
    density, log_probability = run_campaigns(net, c, 2, in_turn(3, 1))
    X = torch.cat([c.X, c.candidates[:, [3, 1]]], 1)
    y = torch.cat([c.y, c.outcomes[:, [3, 1]]], 1)
    for t in range(3):
        mixture, scores = net(X[:, : 2 + t], y[:, : 2 + t], c.targets, c.candidates)
        expected = log_density(mixture, c.truth).mean(1)
        torch.testing.assert_close(density[:, t], expected)
        if t == 0:
            torch.testing.assert_close(log_probability[:, 0], scores.log_softmax(1)[:, 3])
        if t == 1:  # of those that are left
            left = scores[:, [0, 1, 2]].log_softmax(1)
            torch.testing.assert_close(log_probability[:, 1], left[:, 1])


def test_predictions_are_learned_at_some_queries():
    c, net = campaigns(), network()
    every, _ = run_campaigns(net, c, 3, in_turn(0, 1, 2))
    some, log_probability = run_campaigns(net, c, 3, in_turn(0, 1, 2), 1, 2)
    torch.testing.assert_close(every, some)
    weight = net.predict[2].weight
    (expected,) = torch.autograd.grad(every[:, 1::2].sum(), weight, retain_graph=True)
    (found,) = torch.autograd.grad(some.sum(), weight, retain_graph=True)
    torch.testing.assert_close(found, expected)
    # The policy's gradient stays out of the predictions, and the other way round.
    parameters = dict(net.named_parameters())
    of_policy = {name for name in parameters if name.startswith(("cand", "picking", "score"))}
    for loss, expected in ((log_probability, of_policy), (every, set(parameters) - of_policy)):
        gradients = torch.autograd.grad(loss.sum(), parameters.values(), allow_unused=True)
        moved = {name for name, g in zip(parameters, gradients, strict=True) if g is not None}
        assert moved == expected


def test_outcomes_are_noisy_values_of_one_function():
    recipe = TINY.replace(n_targets=300)
    c = draw_campaigns(recipe, 200, 1, torch.Generator().manual_seed(0), 5)
    values = torch.cat([c.y, c.outcomes, c.truth], 1)
    # The functions are centred, with a variance of about one, less what that takes off.
    assert values.mean(1).abs().max() < 0.5
    assert 0.5 < values.var(1).mean() < 1.1


def test_gradient_is_that_of_the_expected_gain():
    """REINFORCE, weighted over all campaigns there can be, against autograd of the expectation."""
    net, c, T = network(), campaigns(n=1), 2
    parameters = [p for name, p in net.named_parameters() if name.startswith(("score", "picking"))]
    orders = list(itertools.permutations(range(4), T))
    runs = [run_campaigns(net, c, T, in_turn(*order)) for order in orders]
    gains = torch.stack([(density[:, -1] - density[:, 0]).detach() for density, _ in runs])
    probabilities = torch.stack([log_p.sum(1).exp() for _, log_p in runs])
    torch.testing.assert_close(probabilities.sum(), torch.ones((), dtype=torch.float64))
    exact = torch.autograd.grad(
        (probabilities * gains).sum(), parameters, retain_graph=True, allow_unused=True
    )
    # Two campaigns at a time, each the other's baseline: the mean over all pairs.
    loss = 0.0
    for (first, one), (second, other) in itertools.product(
        zip(runs, probabilities.detach(), strict=True), repeat=2
    ):
        density, log_p = (torch.cat(parts) for parts in zip(first, second, strict=True))
        found = policy_loss(log_p, advantages(density.detach(), 1.0, 2))
        loss = loss + (one * other).squeeze() * found
    estimated = torch.autograd.grad(loss, parameters, allow_unused=True)
    assert max(g.abs().max() for g in exact if g is not None) > 1e-4
    for one, other in zip(exact, estimated, strict=True):
        if one is not None:
            torch.testing.assert_close(other, -one, rtol=1e-8, atol=1e-12)


def test_advantages():
    density = torch.tensor([[0.0, 1.0, 3.0], [0.0, 0.0, 4.0]], dtype=torch.float64)
    # Rewards 1, 2 and 0, 4; returns with a discount of a half 2, 2 and 2, 4.
    expected = torch.tensor([[0.0, -2.0], [0.0, 2.0]], dtype=torch.float64)
    torch.testing.assert_close(advantages(density, 0.5, 2), expected)
    both = advantages(torch.cat([density, density + 1]), 0.5, 2)
    torch.testing.assert_close(both, torch.cat([expected, expected]))


def test_validation_does_not_depend_on_the_training():
    net = TINY.network()
    state = torch.get_rng_state()
    policy, random = validate(net, TINY)
    assert torch.equal(torch.get_rng_state(), state)
    assert policy.shape == random.shape == (TINY.max_budget + 1,)
    assert policy[0] == random[0]
    again, _ = validate(net, TINY)
    assert torch.equal(policy, again)


def files(folder):
    state = torch.load(folder / "state.pt", weights_only=True)
    log = list(csv.reader((folder / "log.csv").open()))
    # All but the seconds.
    rows = [row[:1] + row[2:] for row in log]
    return state, rows, load_runtime(folder / "policy.safetensors", safe=False)


@pytest.mark.parametrize("stop", [2, 4])
def test_a_run_goes_on_bit_for_bit(tmp_path, monkeypatch, often, stop):
    ALINETrainer(TINY, tmp_path / "whole", progress=False).run()
    trainer = ALINETrainer(TINY, tmp_path / "parts", progress=False)
    advance = ALINETrainer._advance

    def breaks(self):
        if self.step == stop:
            self._save()
            raise MemoryError
        advance(self)

    with monkeypatch.context() as patch:
        patch.setattr(ALINETrainer, "_advance", breaks)
        with pytest.raises(MemoryError):
            trainer.run()
    ALINETrainer(TINY, tmp_path / "parts", progress=False).run(resume=True)
    (one, log, (runtime, header)), (other, other_log, (resumed, other_header)) = map(
        files, (tmp_path / "whole", tmp_path / "parts")
    )
    assert log == other_log
    assert [row[0] for row in log[1:]] == [str(step) for step in range(1, 7)]
    for name, value in one["network"].items():
        assert torch.equal(value, other["network"][name])
    assert header["sha256"] == other_header["sha256"]
    assert header["steps_done"] == other_header["steps_done"] > TINY.first_steps
    assert runtime.n_features == resumed.n_features == 2


def test_steps_after_a_checkpoint_are_done_again(tmp_path, monkeypatch, often):
    """What was logged after the last checkpoint of a run that was killed is not logged twice."""
    trainer = ALINETrainer(TINY, tmp_path, progress=False)
    advance = ALINETrainer._advance

    def breaks(self):
        if self.step == 3:
            raise MemoryError
        advance(self)

    with monkeypatch.context() as patch:
        patch.setattr(ALINETrainer, "_advance", breaks)
        with pytest.raises(MemoryError):
            trainer.run()
    assert len(list(csv.reader((tmp_path / "log.csv").open()))) == 4
    ALINETrainer(TINY, tmp_path, progress=False).run(resume=True)
    log = list(csv.reader((tmp_path / "log.csv").open()))
    assert [row[0] for row in log[1:]] == [str(step) for step in range(1, 7)]


def test_runs_stop_in_time(tmp_path):
    trainer = ALINETrainer(TINY, tmp_path, progress=False, max_seconds=0)
    assert trainer.run() == -np.inf
    assert trainer.step == 0
    assert not trainer.interrupted
    assert not trainer.policy_path.exists()


def test_folders(tmp_path):
    with pytest.raises(TrainingError, match="holds no run to resume"):
        ALINETrainer(TINY, tmp_path / "none", progress=False).run(resume=True)
    ALINETrainer(TINY, tmp_path, progress=False, max_seconds=0).run()
    with pytest.raises(TrainingError, match="already holds a run"):
        ALINETrainer(TINY, tmp_path, progress=False).run()
    with pytest.raises(TrainingError, match="pass the same"):
        ALINETrainer(TINY.replace(seed=1), tmp_path, progress=False).run(resume=True)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"n_rollouts": 1}, "n_rollouts"),
        ({"layers": 0}, "layers"),
        ({"heads": 3}, "heads"),
        ({"first_steps": 6}, "first_steps"),
        ({"n_candidates": 2}, "n_candidates"),
        ({"discount": 1.5}, "discount"),
        ({"lr": 0.0}, "lr"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_recipes(change, named):
    with pytest.raises(ValueError, match=named):
        TINY.replace(**change)


def test_first_steps_are_a_part_of_the_steps():
    assert TINY.replace(steps=60).first_steps == 30
    assert TINY.replace(steps=60, first_steps=50).first_steps == 50
