import csv
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from sklearn_asal.policies import load_policy
from sklearn_asal.trainer import loop, step
from sklearn_asal.trainer.loop import Trainer, TrainingError
from sklearn_asal.trainer.presets import PRESETS, Preset

TINY = Preset(
    n_features=1,
    max_budget=4,
    n_init=2,
    n_kernels=4,
    n_functions=1,
    embedding=16,
    hidden=16,
    heads=2,
    n_fourier=20,
    direct_steps=3,
    steps=6,
    warmup=2,
    average=0.5,
)


def trainer(out, preset=TINY, **options):
    options = {"validate_every": 2, "validation_tasks": 8, "progress": False, **options}
    return Trainer(preset, out, **options)


def log(out):
    with (out / "log.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def final_state(out):
    return torch.load(out / "state.pt", weights_only=True)


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list):
        for pair in zip(one, other, strict=True):
            assert_same(*pair)
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
    else:
        assert one == other


ZEROS = {"objective": 0.0, "unsafe_share": 0.0, "gp_test_rmse": 0.0}


class Stop(Exception):
    """Ends a run as a kill would, at a chosen step."""


def stop_after(monkeypatch, step):
    advance = Trainer._advance

    def counted(self, bar):
        if self.step == step:
            raise Stop
        advance(self, bar)

    monkeypatch.setattr(Trainer, "_advance", counted)


@pytest.mark.parametrize("killed_at", [1, 3, 5])
def test_resume_is_bit_for_bit(tmp_path, monkeypatch, killed_at):
    trainer(tmp_path / "whole").run()
    with monkeypatch.context() as patch:
        stop_after(patch, killed_at)
        with pytest.raises(Stop):
            trainer(tmp_path / "parts", save_every=0).run()
    trainer(tmp_path / "parts").run(resume=True)
    whole, parts = (final_state(tmp_path / name) for name in ("whole", "parts"))
    for state in (whole, parts):
        del state["seconds"]
    assert_same(whole, parts)
    drop = {"seconds"}
    rows = [
        [{k: v for k, v in row.items() if k not in drop} for row in log(tmp_path / name)]
        for name in ("whole", "parts")
    ]
    assert rows[0] == rows[1]


def test_gradient_goes_through_time_after_the_direct_steps(tmp_path, monkeypatch):
    seen, advance = [], Trainer._advance

    def noted(self, bar):
        seen.append(
            (self.compute_gradient.through_time, self.compute_gradient.preset.safety_weight)
        )
        advance(self, bar)

    monkeypatch.setattr(Trainer, "_advance", noted)
    for direct_steps in (0, 3, 9):
        preset = TINY.replace(direct_steps=direct_steps, safety_weight=0.8, direct_weight=0.5)
        trainer(tmp_path / str(direct_steps), preset).run()
    through_time, direct = (True, 0.8), (False, 0.4)
    assert seen == [through_time] * 6 + [direct] * 3 + [through_time] * 3 + [direct] * 6


def test_steps_after_the_last_checkpoint_are_done_again(tmp_path, monkeypatch):
    trainer(tmp_path / "whole").run()
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Stop):
            trainer(tmp_path / "parts", save_every=0).run()
    with monkeypatch.context() as patch:
        stop_after(patch, 5)
        with pytest.raises(Stop):
            trainer(tmp_path / "parts", save_every=1e9).run(resume=True)
    trainer(tmp_path / "parts").run(resume=True)
    assert [int(row["step"]) for row in log(tmp_path / "parts")] == [1, 2, 3, 4, 5, 6]
    whole, parts = (final_state(tmp_path / name) for name in ("whole", "parts"))
    assert_same(whole["weights"], parts["weights"])


def test_training_improves_the_objective(tmp_path):
    preset = TINY.replace(steps=60, warmup=5, lr=1e-2, n_kernels=16, max_budget=3)
    trainer(tmp_path, preset, validate_every=10, validation_tasks=64).run()
    scores = [float(r["validation_objective"]) for r in log(tmp_path) if r["validation_objective"]]
    assert max(scores) > scores[0] + 0.02


def test_best_policy_is_kept_with_its_header(tmp_path):
    best = trainer(tmp_path).run()
    network, header = load_policy(tmp_path / "policy.safetensors", safe=True)
    assert header["validation"]["objective"] == best
    assert Preset.from_dict(header["preset"]) == TINY
    assert header["max_budget"] == TINY.max_budget
    assert header["noise_std"] == pytest.approx([0.01, 0.1962], abs=1e-4)
    state = final_state(tmp_path)
    for name, value in network.state_dict().items():
        assert torch.equal(value, state["best"]["average"][name])


@pytest.mark.parametrize("average", [0.3, 0.6, 0.98])
def test_average_of_the_weights_is_exponential(tmp_path, monkeypatch, average):
    """Against the recursion, written out."""
    seen, advance = [], Trainer._advance

    def weights(module):
        return torch.cat([part.detach().flatten() for part in module.parameters()]).double()

    def noted(self, bar):
        if not seen:
            seen.append(weights(self.network))
        advance(self, bar)
        seen.append(weights(self.network))

    monkeypatch.setattr(Trainer, "_advance", noted)
    preset = TINY.replace(average=average, steps=20, lr=0.2, final_lr=1.0)
    run = trainer(tmp_path, preset, validate_every=50)
    run.run()
    mean, *rest = seen
    for step_, new in enumerate(rest):
        # Early on the decay is that of a young average.
        decay = min(average, (1 + step_) / (10 + step_))
        mean = decay * mean + (1 - decay) * new
    torch.testing.assert_close(weights(run.average), mean, rtol=0, atol=1e-6)
    # The weights moved, so that a wrong decay would be noticed.
    assert (seen[-1] - mean).abs().max() > 1e-3
    kept, _ = load_policy(run.policy_path, safe=True)
    torch.testing.assert_close(weights(kept), mean, rtol=0, atol=1e-6)


def test_plain_weights_are_kept_without_an_average(tmp_path):
    run = trainer(tmp_path, TINY.replace(average=0.0), validate_every=TINY.steps)
    run.run()
    kept, _ = load_policy(run.policy_path, safe=True)
    for name, value in run.network.state_dict().items():
        assert torch.equal(kept.state_dict()[name], value)


def test_collapse_rolls_back_to_the_best(tmp_path, monkeypatch):
    scores = iter([1.0, 2.0, 1.0])

    def fake(network, preset, n_tasks, seed, n_rmse):
        return {**ZEROS, "objective": next(scores)}

    monkeypatch.setattr(loop, "evaluate", fake)
    trainer(tmp_path).run()
    assert [row["event"] for row in log(tmp_path) if row["validation_objective"]] == [
        "best",
        "best",
        "rolled back",
    ]
    state = final_state(tmp_path)
    assert state["lr_scale"] == 0.5
    assert_same(state["weights"], state["best"])


def test_not_finite_steps_are_skipped_and_then_stop_the_run(tmp_path, monkeypatch):
    def bad(name, rollout, tasks, gamma, weight):
        return rollout.X.sum() * torch.tensor(float("nan"))

    with monkeypatch.context() as patch:
        patch.setattr(step, "objective", bad)
        patch.setattr(
            loop,
            "evaluate",
            lambda *a, **k: ZEROS,
        )
        with pytest.raises(TrainingError, match="no finite gradient"):
            trainer(tmp_path, TINY.replace(steps=20)).run()
    assert [row["event"] for row in log(tmp_path)].count("skipped") == 9  # one is also "best"
    state = final_state(tmp_path)
    assert state["step"] == 10
    assert all(torch.isfinite(v).all() for v in state["weights"]["network"].values())


def test_folder_in_use(tmp_path):
    trainer(tmp_path).run()
    with pytest.raises(TrainingError, match="already holds a run"):
        trainer(tmp_path).run()


def test_nothing_to_resume(tmp_path):
    with pytest.raises(TrainingError, match="holds no run"):
        trainer(tmp_path / "missing").run(resume=True)
    assert not (tmp_path / "missing").exists()


def test_killed_during_the_first_step(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 0)
        with pytest.raises(Stop):
            trainer(tmp_path).run()
    trainer(tmp_path).run(resume=True)
    assert final_state(tmp_path)["step"] == TINY.steps


@pytest.mark.parametrize("content", [b"", b"not a checkpoint"])
def test_damaged_state(tmp_path, content):
    (tmp_path / "state.pt").write_bytes(content)
    with pytest.raises(TrainingError, match="is damaged"):
        trainer(tmp_path).run(resume=True)


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match="cannot be made"):
        trainer(tmp_path / "file" / "run").run()


@pytest.mark.parametrize("device", ["no-such-device", "meta:x"])
def test_device_that_cannot_be_used(tmp_path, device):
    with pytest.raises(TrainingError, match="device"):
        trainer(tmp_path, device=device)


def test_resume_with_another_preset(tmp_path):
    trainer(tmp_path).run()
    with pytest.raises(TrainingError, match=r"gamma \(run: 0.05, asked: 0.1\)"):
        trainer(tmp_path, TINY.replace(gamma=0.1)).run(resume=True)


def test_a_resumed_run_validates_as_before(tmp_path, monkeypatch):
    whole = trainer(tmp_path / "whole", validate_every=3, validation_tasks=5)
    whole.run()
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Stop):
            trainer(tmp_path / "parts", validate_every=3, validation_tasks=5, save_every=0).run()
    with pytest.raises(TrainingError, match="validation_tasks=5, asked: 6"):
        Trainer(TINY, tmp_path / "parts", validation_tasks=6, progress=False).run(resume=True)
    Trainer(TINY, tmp_path / "parts", progress=False).run(resume=True)
    assert [
        [row["validation_objective"] for row in log(tmp_path / name)] for name in ("whole", "parts")
    ] == [[row["validation_objective"] for row in log(tmp_path / "whole")]] * 2


def test_start_from_a_policy(tmp_path):
    trainer(tmp_path / "first").run()
    first = tmp_path / "first" / "policy.safetensors"
    preset = TINY.replace(gamma=0.2, lr=1e-12, steps=2)
    trainer(tmp_path / "second", preset, start_from=first).run()
    given, _ = load_policy(first, safe=True)
    network, header = load_policy(tmp_path / "second" / "policy.safetensors", safe=True)
    for name, value in given.state_dict().items():
        torch.testing.assert_close(network.state_dict()[name], value)
    assert header["started_from"]["preset"]["steps"] == 6
    trainer(tmp_path / "second", preset).run(resume=True)


def test_start_from_another_network(tmp_path):
    trainer(tmp_path / "first").run()
    first = tmp_path / "first" / "policy.safetensors"
    with pytest.raises(TrainingError, match=r"different: hidden \(policy: 16, preset: 8\)\."):
        trainer(tmp_path / "second", TINY.replace(hidden=8), start_from=first).run()
    assert not (tmp_path / "second").exists()


def test_global_generators_are_left_alone(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    trainer(tmp_path).run()
    assert torch.equal(torch.rand(3), expected)


def test_full_disk_keeps_what_was_saved(tmp_path, monkeypatch):
    run = trainer(tmp_path, save_every=0)
    save = torch.save

    def full(state, path):
        if state["step"] < 3:
            return save(state, path)
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", full)
        with pytest.raises(TrainingError, match=r"cannot be written.*No space left.*--resume"):
            run.run()
    assert not (tmp_path / "state.pt.tmp").exists()
    assert final_state(tmp_path)["step"] == 2
    trainer(tmp_path).run(resume=True)
    assert final_state(tmp_path)["step"] == TINY.steps


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_log_on_a_full_device(tmp_path):
    run = trainer(tmp_path)
    run.prepare()
    run.log_path = Path("/dev/full")
    with pytest.raises(TrainingError, match=r"cannot be written.*No space left"):
        run.advance()


def test_time_limit(tmp_path):
    trainer(tmp_path, TINY.replace(steps=10**6), max_seconds=0.5).run()
    step_ = final_state(tmp_path)["step"]
    assert 0 < step_ < 10**6
    trainer(tmp_path, TINY.replace(steps=10**6), max_seconds=0.0).run(resume=True)
    assert final_state(tmp_path)["step"] == step_


def test_validation_is_logged(tmp_path):
    trainer(tmp_path).run()
    rows = [row for row in log(tmp_path) if row["validation_objective"]]
    assert [row["step"] for row in rows] == ["2", "4", "6"]
    assert all(0 < float(row["validation_gp_test_rmse"]) < 3 for row in rows)
    assert all(0 <= float(row["validation_unsafe_share"]) <= 1 for row in rows)


def test_shards_train_as_well(tmp_path):
    trainer(tmp_path, threads=2).run()
    assert len(log(tmp_path)) == TINY.steps


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_put_back(tmp_path, threads):
    before, others = torch.get_num_threads(), threading.active_count()
    try:
        torch.set_num_threads(3)
        run = trainer(tmp_path, threads=threads)
        run.run()
        assert torch.get_num_threads() == 3
        loop.evaluate(run.network, TINY, 4)
        assert torch.get_num_threads() == 3
        assert threading.active_count() == others
    finally:
        torch.set_num_threads(before)


def test_tensorboard_gets_the_numbers_of_the_log(tmp_path, monkeypatch):
    written = []

    class Writer:
        def __init__(self, folder, purge_step):
            assert folder == tmp_path / "tensorboard"
            assert purge_step == 1

        def add_scalar(self, name, value, step):
            written.append((name, value, step))

        def flush(self):
            pass

    monkeypatch.setattr(loop, "_summary_writer", lambda: Writer)
    trainer(tmp_path, tensorboard=True).run()
    for row in log(tmp_path):
        assert ("objective", float(row["objective"]), int(row["step"])) in written
    assert [step for name, _, step in written if name == "validation_objective"] == [2, 4, 6]


def test_missing_tensorboard_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(TrainingError, match=r"sklearn-asal\[tensorboard\]"):
        trainer(tmp_path, tensorboard=True).run()
    # The folder is as it was, so that the run can be begun without.
    assert not any(tmp_path.iterdir())


SMALL_RUN = (
    "--batch 5 --n-init 2 --max-budget 3 --embedding 16 --hidden 16 --heads 2 --threads 1 "
    "--validate-every 7 --validation-tasks 4 --save-every 0.2"
).split()


def start(out, *options):
    """A real process that trains."""
    command = [sys.executable, "-m", "sklearn_asal", "train", "safe-2d", "--out", str(out)]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    return subprocess.Popen(
        [*command, *SMALL_RUN, *options],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def steps_logged(out):
    try:
        return int(log(out)[-1]["step"])
    except (FileNotFoundError, IndexError, TypeError, ValueError):
        return 0


def wait_until(condition, process):
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_killed_again_and_again(tmp_path):
    """SIGKILL at any moment: the run goes on, and ends as one that was left alone."""
    total = 200
    options = ["--steps", str(total)]
    process, kills = start(tmp_path / "killed", *options), 0
    while kills < 4:
        goal = steps_logged(tmp_path / "killed") + 13 * (kills + 1)
        wait_until(lambda g=goal: steps_logged(tmp_path / "killed") >= g, process)
        process.kill()
        process.communicate()
        kills += 1
        process = start(tmp_path / "killed", *options, "--resume")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert [row["step"] for row in log(tmp_path / "killed")] == [
        str(step) for step in range(1, total + 1)
    ]
    output, _ = start(tmp_path / "whole", *options).communicate(timeout=120)
    one, other = (final_state(tmp_path / name) for name in ("killed", "whole"))
    for name in ("step", "best_objective", "lr_scale", "weights", "tasks"):
        assert_same(one[name], other[name])


def test_interrupt_saves_and_resumes(tmp_path):
    """A real process, a real Ctrl-C."""
    process = start(tmp_path, "--steps", "100000")
    wait_until(lambda: steps_logged(tmp_path) >= 3, process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "go on with --resume" in output
    state = final_state(tmp_path)
    assert state["step"] == len(log(tmp_path)) >= 3


DAD = PRESETS["dad-2d"].replace(
    n_contrastive=3, n_kernels=4, embedding=16, hidden=16, heads=2, steps=2, warmup=1
)


def test_dad_that_begins_at_its_ceiling_says_so_once(tmp_path, capfd):
    trainer(tmp_path / "high", DAD).run()
    said = "".join(capfd.readouterr())
    assert said.count("log(n_contrastive + 1) = 1.3863 is its ceiling") == 1
    for remedy in ("--max-budget", "--n-contrastive", "--contrast-correlation"):
        assert remedy in said
    trainer(tmp_path / "low", DAD.replace(contrast_correlation=0.999)).run()
    assert "ceiling" not in "".join(capfd.readouterr())
