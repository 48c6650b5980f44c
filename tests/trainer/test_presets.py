import dataclasses
import re

import numpy as np
import pytest
import torch
from scipy.stats import qmc

from sklearn_asal.__main__ import main
from sklearn_asal.trainer.presets import PRESETS, Preset
from sklearn_asal.trainer.priors import Uniform
from sklearn_asal.trainer.step import Step, TaskStream


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_round_trip(name):
    preset = PRESETS[name]
    assert preset.name == name
    assert Preset.from_dict(preset.to_dict()) == preset


def test_round_trip_by_dimension():
    preset = Preset(lengthscale=Uniform((0.1, 0.2), (0.5, 0.9)), lags=[[0, 1, 0.5]])
    assert preset.lags == ((0, 1, 0.5),)
    assert Preset.from_dict(preset.to_dict()) == preset


def test_paper_values():
    preset = PRESETS["safe-2d"]
    assert (preset.n_features, preset.n_init, preset.max_budget, preset.gamma) == (2, 5, 40, 0.05)
    assert preset.n_fourier == 100
    assert (preset.mean_variance, preset.safe_centre) == (Uniform(0.5, 0.5), Uniform(0.5, 0.5))
    assert (preset.embedding, preset.hidden, preset.heads, preset.layers) == (128, 256, 8, 2)


def test_every_field_is_documented_once(capsys):
    documented = re.findall(r"^(\w+) : ", Preset.__doc__, re.M)
    assert documented == [field.name for field in dataclasses.fields(Preset)]
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    documentation = " ".join(Preset.__doc__.split())
    for field in dataclasses.fields(Preset)[1:]:
        assert field.metadata["help"].endswith(".")
        assert field.metadata["help"] in documentation
        about = re.sub("- ", "-", field.metadata["help"])  # where a line was broken
        assert about in re.sub("- ", "-", shown)
        assert f"--{field.name.replace('_', '-')}" in shown


def test_dad_has_a_gradient_where_it_is_short():
    preset = PRESETS["dad-2d"].replace(max_budget=5, n_kernels=8, hidden=16, embedding=16)
    torch.manual_seed(0)
    step = Step(preset.network(), preset)
    score, _, norm = step(next(TaskStream(preset, torch.Generator().manual_seed(3))))
    assert score < np.log(201)
    assert norm > 0.1


def test_correlated_contrast_needs_one_function_a_kernel():
    with pytest.raises(ValueError, match="contrast_correlation needs n_functions=1"):
        PRESETS["dad-2d"].replace(contrast_correlation=0.9, n_functions=2)
    with pytest.raises(ValueError, match="contrast_correlation must be in"):
        PRESETS["dad-2d"].replace(contrast_correlation=1.0)


def test_noise_may_be_most_of_an_output_without_a_safety_function():
    noisy = PRESETS["2d"].replace(variance=Uniform(0.3, 0.4))
    assert noisy.variance.high == 0.4
    with pytest.raises(ValueError, match="mean_variance must"):
        PRESETS["safe-2d"].replace(variance=Uniform(0.3, 0.4))


@pytest.mark.parametrize("reach", [0.2, 1.0])
def test_an_untrained_policy_draws_a_sobol_sequence(reach):
    network = Preset(lead_reach=reach, centre_gain=1e-6).network()
    X = torch.rand(1, 9, 2)
    with torch.inference_mode():
        queried = network(torch.tensor([5.0]), X, torch.zeros(1, 9), torch.ones(1, 9))[0]
    expected = qmc.Sobol(2, scramble=False).random(16)[9]
    np.testing.assert_allclose(queried, 0.5 + reach * (expected - 0.5), atol=1e-5)


def test_lead_of_the_reader_only():
    assert Preset().network().architecture["lead"]
    assert not Preset(lead=False).network().architecture["lead"]
    assert not Preset(kind="transformer", hidden=8, embedding=8).network().architecture["lead"]


def test_cosine_schedule():
    preset = Preset(steps=1000, warmup=100, lr=1e-3, final_lr=0.1)
    rates = [preset.learning_rate(step) for step in range(1000)]
    assert rates[0] == pytest.approx(1e-5)
    assert max(rates) == pytest.approx(1e-3)
    assert rates[99:] == sorted(rates[99:], reverse=True)
    assert rates[-1] == pytest.approx(1e-4, rel=0.01)


def test_step_schedule_is_the_papers():
    preset = Preset(schedule="step", lr=1e-4)
    assert preset.learning_rate(49) == 1e-4
    assert preset.learning_rate(50) == pytest.approx(0.98e-4)
    assert preset.learning_rate(10_000 - 1) == pytest.approx(1e-4 * 0.98**199)


def test_with_batch():
    assert Preset().with_batch(100).batch == 100
    with pytest.raises(ValueError, match="multiple of"):
        Preset(n_functions=5).with_batch(7)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_features", 0),
        ("objective", "X"),
        ("schedule", "linear"),
        ("output", "relu"),
        ("pooling", "max"),
        ("grid", "regular"),
        ("safe_centre", Uniform(0.5, 1.1)),
        ("gamma", 1.0),
        ("lr", 0.0),
        ("average", 1.0),
        ("heads", 3),
        ("clip_norm", -1.0),
        ("lengthscale", Uniform(-1.0, 0.1)),
        ("variance", Uniform(0.0, 5.0)),
        ("mean_variance", Uniform(0.5, 0.99)),
        ("steps", 0),
        ("safety_weight", 0.0),
        ("direct_weight", -1.0),
        ("lags", ((0, 2, 0.1),)),
    ],
)
def test_bad_field_is_named(field, value):
    with pytest.raises(ValueError, match=field):
        Preset(**{field: value})
