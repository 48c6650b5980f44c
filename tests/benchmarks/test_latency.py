"""``bench latency`` prints what it measured; how long that was is another matter."""

import numpy as np
import pytest
import torch

from sklearn_asal.__main__ import main
from sklearn_asal.benchmarks import latency

from ..datasets.settings import SETTINGS


def bench(*arguments):
    return main(["bench", "latency", *map(str, arguments)])


def test_table_and_figure(tmp_path, policy, capsys):
    figure = tmp_path / "latency.png"
    options = ("--calls", 5, "--lengths", 1, 4, "--out", figure, "--deadline-ms", 1e6)
    assert bench("--policy", policy(True), *options) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "p50 ms   p99 ms   max ms   over 1e+06 ms" in lines[0]
    for name in ("query() after tell", "query(X, y, z)", "network in eager torch", "GPSafeQuerier"):
        for n in (1, 4):
            (line,) = (line for line in lines if line.startswith(f"{name}, {n} obs"))
            p50, p99, most, over = (float(word.rstrip("%")) for word in line.split()[-4:])
            assert 0 < p50 <= p99 <= most
            assert over == 0
    assert figure.stat().st_size > 1000


def test_unconstrained(policy, capsys):
    assert bench("--policy", policy(False), "--calls", 1, "--lengths", 3) == 0
    assert "GPQuerier, 3 obs" in capsys.readouterr().out


@pytest.mark.parametrize("load", [0, 1])
def test_soak(policy, load, capsys):
    assert bench("--policy", policy(True), "--soak", 60, "--load", load) == 0
    printed = capsys.readouterr().out
    assert f"60 queries at 1 kHz, {load} threads of load: p50" in printed
    assert "worst" in printed
    assert "memory" in printed


def test_batches_and_pools(policy, capsys):
    assert bench("--policy", policy(True), "--many", 30) == 0
    assert "proposals/s at 25 observations" in capsys.readouterr().out
    assert bench("--policy", policy(True), "--pool", 500) == 0
    printed = capsys.readouterr().out
    assert "pool of 500 x 2: indexed in" in printed
    assert "query() p50" in printed
    assert bench("--policy", policy(True), "--pool", 100) == 1
    assert "--pool must be at least 200" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        bench("--many", 30, "--pool", 500)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--many", 30, "--out", "many.png"), "--out would have no effect: leave it or --many out"),
        (("--soak", 30, "--calls", 9), "--calls would have no effect: leave it or --soak out"),
        (("--many", 30, "--deadline-ms", 2), "--deadline-ms would have no effect"),
        (("--load", 2), "--load would have no effect: add --soak"),
        (("--out", "no-such-folder/a.png"), "make it first"),
        (("--out", "figure.xyz"), "--out must be a file that ends in"),
        (("--out", "figure"), "--out must be a file that ends in"),
    ],
)
def test_options_without_effect(options, message, capsys):
    assert bench("--policy", "safe-2d", *options) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", [("--load", -1), ("--deadline-ms", 0), ("--calls", 0)])
def test_bad_numbers(option, capsys):
    with pytest.raises(SystemExit):
        bench("--soak", 5, *option)
    assert f"argument {option[0]}: must be" in capsys.readouterr().err


def test_share_over_the_deadline():
    lines = latency.table({("a", 5): np.array([1e-3, 2e-3, 4e-3, 4e-3])}, deadline_ms=3.0)
    assert lines[1].split() == ["a,", "5", "observations", "3.000", "4.000", "4.000", "50.00%"]


def test_unknown_policy(capsys):
    assert bench("--policy", "no-such") == 1
    assert "neither a preset" in capsys.readouterr().err


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_program_around_do_not_matter(policy, setting):
    file = policy(True)
    with SETTINGS[setting]():
        threads, dtype, errors = torch.get_num_threads(), torch.get_default_dtype(), np.geterr()
        for prepare in latency.methods(file, True, 2).values():
            assert (latency.latencies(prepare, 3, 2, 2) > 0).all()
        assert (latency.soak(file, True, 2, 45, load=1)[0] > 0).all()
        assert latency.throughput(file, True, 2, 25) > 0
        for seconds in latency.pool_latency(file, True, 300, 2, calls=3):
            assert np.min(seconds) > 0
        # And they are the program's own again.
        assert torch.get_num_threads() == threads
        assert torch.get_default_dtype() == dtype
        assert np.geterr() == errors


def test_of_a_network_that_picks_candidates_there_is_no_bare_one():
    timed = latency.methods("aline-1d", False, 1)
    assert "network in eager torch" not in timed
    timed["query(X, y, z)"](np.array([[0.5], [0.2]]), np.array([0.1, 0.3]), np.ones(2))()
