"""The training loop: simulate, update, validate, keep the best, survive."""

import contextlib
import copy
import csv
import math
import os
import signal
import threading
import time
from pathlib import Path

import joblib
import torch
from torch.optim.swa_utils import get_ema_multi_avg_fn
from tqdm import tqdm

from .. import __version__
from ..policies.checkpoint import save_policy
from ..policies.registry import load_policy
from .distributed import broadcast, gather, n_ranks, rank
from .evaluate import evaluate
from .presets import Preset
from .priors import TOTAL_VARIANCE
from .step import TaskStream, make_step
from .threads import one_torch_thread

# Never the seed of a training run or of a final evaluation.
VALIDATION_SEED = 20_260_000
MAX_SKIPPED = 10
# Steps after which results are read from a GPU, which has to be waited for.
READ_EVERY = 25
# The bound of DAD has a ceiling; with this much of it there is no gradient left to speak of.
AT_CEILING = 0.99
# A fall of the validation objective by this much is a collapse, not noise.
COLLAPSE = 0.15
# What a checkpoint holds besides weights, preset and generator.
STATE = ("step", "skipped", "seconds", "lr_scale", "best_objective", "best", "started_from")
COLUMNS = (
    "step",
    "seconds",
    "objective",
    "unsafe_share",
    "lr",
    "gradient_norm",
    "validation_objective",
    "validation_unsafe_share",
    "validation_gp_test_rmse",
    "event",
)


class TrainingError(RuntimeError):
    """A run cannot go on, or its folder cannot be used."""


def usable_device(name):
    """A device that can be computed on.

    Parameters
    ----------
    name : str or torch.device

    Returns
    -------
    torch.device

    Raises
    ------
    TrainingError
        There is none of this name, or it cannot be used.
    """
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise TrainingError(f"device {str(name)!r} cannot be used here: {error}") from error
    return device


def read_state(folder, device="cpu"):
    """The last checkpoint of a run.

    Parameters
    ----------
    folder : path-like
        Of the run.
    device : str or torch.device, default="cpu"
        Where its tensors shall be.

    Returns
    -------
    dict

    Raises
    ------
    TrainingError
        There is none, or it is damaged.
    """
    path = Path(folder) / "state.pt"
    if not path.exists():
        raise TrainingError(f"{folder} holds no run to resume; leave --resume out.")
    try:
        return torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # torch.load raises many kinds on a damaged file
        raise TrainingError(
            f"{path} is damaged and the run cannot go on ({type(error).__name__}); begin anew in "
            "another folder, with --start-from its policy.safetensors if there is one."
        ) from error


def write_state(folder, state):
    """Put a checkpoint in the place of the last one, which stays where this raises.

    Parameters
    ----------
    folder : path-like
        Of the run.
    state : dict
    """
    path = Path(folder) / "state.pt"
    temporary = path.with_name("state.pt.tmp")
    try:
        torch.save(state, temporary)
        os.replace(temporary, path)
    except BaseException:
        # A full disk shall not stay full of this.
        temporary.unlink(missing_ok=True)
        raise


class Trainer:
    """Train a policy; everything it needs to go on lives in one folder.

    The folder holds ``policy.safetensors`` (the best policy so far by validation objective),
    ``state.pt`` (what :meth:`run` needs to go on, bit for bit on the same device with the same
    number of threads) and ``log.csv``.

    Parameters
    ----------
    preset : Preset
    out : path-like
        The folder of the run; made if missing.
    start_from : path-like, optional
        Policy file whose weights to begin with; its network has to be the preset's.
    device : str, default="cpu"
    threads : int, optional
        CPU threads among which a batch is shared; as many of them as divide ``n_kernels`` are
        used. By default one for each core.
    save_every : float, default=120
        Seconds between two checkpoints.
    validate_every : int, optional
        Steps between two validations; by default 50, or what a resumed run has.
    validation_tasks : int, optional
        By default 256, or what a resumed run has; a run cannot change it, for its best policy
        is that of one set of tasks.
    progress : bool, default=True
        Whether to show a progress bar.
    max_seconds : float, optional
        Stop after this long, as Ctrl-C does; the run can be resumed.
    tensorboard : bool, default=False
        Log to ``out/tensorboard`` as well; needs the package tensorboard.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C ended the last run before its last step.

    Notes
    -----
    Where :mod:`torch.distributed` has been initialised, the processes share each batch: every rank
    simulates its own functions, and rank 0 alone validates and writes.
    """

    def __init__(
        self,
        preset,
        out,
        *,
        start_from=None,
        device="cpu",
        threads=None,
        save_every=120.0,
        validate_every=None,
        validation_tasks=None,
        progress=True,
        max_seconds=None,
        tensorboard=False,
    ):
        self.preset = preset
        self.out = Path(out)
        self.start_from = start_from
        self.device = usable_device(device)
        self.threads = threads or joblib.cpu_count()
        if not save_every >= 0:
            raise ValueError(f"save_every must be at least 0 seconds, got {save_every}")
        self.save_every = save_every
        self.validate_every = validate_every
        self.validation_tasks = validation_tasks
        self.progress = progress
        self.max_seconds = math.inf if max_seconds is None else max_seconds
        # Before a folder is made that would then hold a run.
        self.writer_class = _summary_writer() if tensorboard else None
        self.interrupted = False
        self.rank = rank()
        self.on_gpu = self.device.type == "cuda"
        self.stream = torch.cuda.Stream(self.device) if self.on_gpu else None

    @property
    def policy_path(self):
        """File of the best policy so far."""
        return self.out / "policy.safetensors"

    def run(self, resume=False):
        """Train until ``preset.steps``, or until Ctrl-C.

        Parameters
        ----------
        resume : bool, default=False
            Go on from ``state.pt``, whose preset then has to be this one.

        Returns
        -------
        float
            Best validation objective; minus infinity before the first validation.

        Raises
        ------
        TrainingError
            The folder already holds a run (and ``resume`` is off), holds none (and it is on) or
            another preset's, or a damaged one; the device or folder cannot be used; or ten steps
            in a row had no finite gradient.
        """
        self.prepare(resume)
        return self.advance()

    def prepare(self, resume=False):
        """The first half of :meth:`run`: all but the training itself.

        Parameters
        ----------
        resume : bool, default=False

        Raises
        ------
        TrainingError
        """
        with torch.cuda.stream(self.stream):
            self._start(resume)

    def advance(self):
        """The second half of :meth:`run`.

        Returns
        -------
        float

        Raises
        ------
        TrainingError
        """
        end = time.monotonic() + self.max_seconds
        self.clock = time.monotonic()
        self.interrupted = False
        with (
            one_torch_thread(),
            _Interrupt() as interrupt,
            self._bar() as bar,
            torch.cuda.stream(self.stream),
        ):
            while self.step < self.preset.steps:
                stop = interrupt.asked or time.monotonic() > end
                if not self.pending and broadcast(stop):
                    self.interrupted = broadcast(interrupt.asked)
                    bar.write(f"Stopped at step {self.step}; go on with --resume.")
                    break
                self._advance(bar)
            if self.pending:
                self._read_results(False, bar)
            self._save()
        return self.best_objective

    # -- one step ---------------------------------------------------------------------------

    def _advance(self, bar):
        lr = self.preset.learning_rate(self.step) * self.lr_scale
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        result = self.compute_gradient(next(self.tasks))
        # Results of a GPU are read later; until then a gradient of zeros has to do.
        if self.on_gpu or torch.isfinite(result[2]):
            self.optimizer.step()
            self._update_average()
        self.step += 1
        if self.step == self.preset.direct_steps:
            self._make_step()
        self._tick()
        self.pending.append((self.step, self.seconds, lr, result))
        validate = self.step % self.validate_every == 0 or self.step == self.preset.steps
        if not self.on_gpu or validate or len(self.pending) >= READ_EVERY:
            self._read_results(validate, bar)

    def _read_results(self, validate, bar):
        """Log the results of the pending steps, and react to them."""
        results = torch.stack([result for *_, result in self.pending]).tolist()
        rows = []
        for (step, seconds, lr, _), (score, unsafe, norm) in zip(
            self.pending, results, strict=True
        ):
            row = {"step": step, "seconds": round(seconds, 2), "objective": score, "lr": lr}
            row |= {"unsafe_share": unsafe, "gradient_norm": norm}
            if math.isnan(unsafe):
                del row["unsafe_share"]
            if math.isfinite(norm):
                self.skipped = 0
            else:
                self.skipped += 1
                row["event"] = "skipped"
            rows.append(row)
        bar.update(len(rows))
        self.pending.clear()
        if validate:
            rows[-1].update(self._validate())
        self._log(rows)
        self._warn_of_ceiling(rows[0]["objective"], bar)
        shown = {"objective": score, "unsafe": unsafe, "best": self.best_objective}
        bar.set_postfix(**{k: f"{v:.3f}" for k, v in shown.items() if math.isfinite(v)})
        if self.skipped >= MAX_SKIPPED:
            self._save()
            raise TrainingError(
                f"{self.skipped} steps in a row had no finite gradient; stopped at step "
                f"{self.step}. The best policy so far is {self.policy_path}; try a smaller lr."
            )
        if broadcast(time.monotonic() - self.saved_at > self.save_every):
            self._save()

    def _warn_of_ceiling(self, score, bar):
        """Say so, once, where the bound of DAD is at its ceiling from the start."""
        preset = self.preset
        if not preset.needs_contrast or self.checked_ceiling:
            return
        self.checked_ceiling, ceiling = True, math.log(preset.n_contrastive + 1)
        if score > AT_CEILING * ceiling and self.rank == 0:
            bar.write(
                f"Warning: the objective begins at {score:.4f}, and log(n_contrastive + 1) = "
                f"{ceiling:.4f} is its ceiling: there is next to nothing to learn from. Begin anew "
                "with a smaller --max-budget (5), a larger --n-contrastive, or contrastive "
                "functions nearer to the true one (--contrast-correlation 0.99)."
            )

    def _update_average(self):
        if self.average is None:
            return
        # The decay grows to the preset's, so that the first weights are soon forgotten.
        decay = min(self.preset.average, (1 + self.step) / (10 + self.step))
        # Without an AveragedModel, which counts its updates and so waits for a GPU.
        models = self.average, self.network
        get_ema_multi_avg_fn(decay)(*(list(model.parameters()) for model in models), None)

    def _validate(self):
        candidate = self.network if self.average is None else self.average
        result = None
        if self.rank == 0:
            n = self.validation_tasks
            # The error needs long rollouts and is only looked at, so fewer tasks do.
            result = evaluate(candidate, self.preset, n, VALIDATION_SEED, n_rmse=max(1, n // 4))
        result = broadcast(result)
        score = result["objective"]
        row = {"validation_objective": score}
        row |= {f"validation_{k}": result[k] for k in ("unsafe_share", "gp_test_rmse")}
        if score > self.best_objective:
            self.best_objective = score
            self.best = copy.deepcopy(self._weights())
            self._save_policy(candidate, result)
            row["event"] = "best"
        elif score < self.best_objective - COLLAPSE and self.step > self.preset.warmup:
            self._load_weights(self.best)
            self.lr_scale *= 0.5
            row["event"] = "rolled back"
        return row

    # -- state ------------------------------------------------------------------------------

    def _start(self, resume):
        with torch.random.fork_rng():
            torch.manual_seed(self.preset.seed)
            self.started_from = None
            self.network = self._first_network().to(self.device)
        if self.rank == 0 and not resume:
            if (self.out / "state.pt").exists():
                raise TrainingError(
                    f"{self.out} already holds a run; go on with it by --resume, or choose another "
                    "folder."
                )
            try:
                self.out.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise TrainingError(f"the folder {self.out} cannot be made: {error}") from error
        broadcast(None)  # nobody goes on before that
        if resume:
            state = read_state(self.out, self.device)
        self.average = copy.deepcopy(self.network) if self.preset.average else None
        self.optimizer = torch.optim.RAdam(self.network.parameters(), lr=self.preset.lr)
        generator = torch.Generator(self.device)
        # A prime, so that ranks of neighbouring seeds do not see the same tasks.
        generator.manual_seed(self.preset.seed + 7919 * self.rank)
        self.tasks = TaskStream(self.preset, generator, self.threads)
        self.pending, self.checked_ceiling = [], resume
        self.step, self.skipped, self.seconds = 0, 0, 0.0
        self.lr_scale, self.best_objective, self.best = 1.0, float("-inf"), None
        self.clock = time.monotonic()
        if resume:
            self._restore(state)
            self.saved_at = self.clock
        else:
            self.validate_every = self.validate_every or 50
            self.validation_tasks = self.validation_tasks or 256
            # Even a run that is killed during its first step can be resumed.
            self._save()
        self._make_step()
        self._open_log(resume)

    def _make_step(self):
        preset, through_time = self.preset, self.step >= self.preset.direct_steps
        if not through_time:
            weight = preset.safety_weight * preset.direct_weight
            preset = preset.replace(safety_weight=weight)
        self.compute_gradient = make_step(self.network, preset, self.tasks, through_time)

    def _first_network(self):
        network = self.preset.network()
        if self.start_from is None:
            return network
        given, header = load_policy(self.start_from, safe=self.preset.safe)
        ours, theirs = network.architecture, given.architecture
        # Lags have no weights, so they may be added to what was trained without.
        keys = [key for key in ours if ours[key] != theirs[key] and key != "lags"]
        if keys:
            different = ", ".join(f"{k} (policy: {theirs[k]}, preset: {ours[k]})" for k in keys)
            raise TrainingError(
                f"start_from: the network in {self.start_from} is not the preset's; different: "
                f"{different}. Set these fields of the preset as the policy has them."
            )
        network.load_state_dict(given.state_dict())
        facts = ("name", "steps_done", "seconds", "device", "preset", "validation", "started_from")
        self.started_from = {fact: header.get(fact) for fact in facts}
        return network

    def _weights(self):
        return {
            "network": self.network.state_dict(),
            "average": self.average and self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def _load_weights(self, weights):
        self.network.load_state_dict(weights["network"])
        if self.average is not None:
            self.average.load_state_dict(weights["average"])
        self.optimizer.load_state_dict(copy.deepcopy(weights["optimizer"]))

    def _restore(self, state):
        # Through a preset, so that fields younger than the run have their defaults.
        saved, asked = Preset.from_dict(state["preset"]).to_dict(), self.preset.to_dict()
        changed = [k for k in asked if saved[k] != asked[k]]
        if changed:
            raise TrainingError(
                f"{self.out} holds a run with another preset; different: "
                + ", ".join(f"{k} (run: {saved[k]}, asked: {asked[k]})" for k in changed)
            )
        known = state["validation"]
        if self.validation_tasks not in (None, known["tasks"]):
            raise TrainingError(
                f"{self.out} holds a run with validation_tasks={known['tasks']}, asked: "
                f"{self.validation_tasks}; its best policy could not be told from later ones."
            )
        self.validation_tasks = known["tasks"]
        self.validate_every = self.validate_every or known["every"]
        self._load_weights(state["weights"])
        if len(state["tasks"]) != n_ranks():
            raise TrainingError(
                f"{self.out} holds a run of {len(state['tasks'])} processes, and there are "
                f"{n_ranks()}; start as many."
            )
        self.tasks.restore(state["tasks"][self.rank])
        for name in STATE:
            setattr(self, name, state[name])

    def _save(self):
        self._tick()
        state = {name: getattr(self, name) for name in STATE}
        state["preset"] = self.preset.to_dict()
        state["weights"] = self._weights()
        state["validation"] = {"every": self.validate_every, "tasks": self.validation_tasks}
        state["tasks"] = gather(self.tasks.state())
        if self.rank == 0:
            with self._writing():
                write_state(self.out, state)
        self.saved_at = time.monotonic()

    @contextlib.contextmanager
    def _writing(self):
        try:
            yield
        except (OSError, RuntimeError) as error:  # torch.save raises RuntimeError on a full disk
            raise TrainingError(
                f"the folder {self.out} cannot be written: {error}. What was saved before stays; "
                "make room there or give it write permission, then go on with --resume."
            ) from error

    def _tick(self):
        now = time.monotonic()
        self.seconds += now - self.clock
        self.clock = now

    def _save_policy(self, network, result):
        if self.rank > 0:
            return
        self._tick()
        p = self.preset
        noise = [(TOTAL_VARIANCE - v) ** 0.5 for v in reversed(p.variance.range)]
        header = {
            "name": p.name,
            "n_features": p.n_features,
            "safe": p.safe,
            "n_init": p.n_init,
            "max_budget": p.max_budget,
            "noise_std": noise,
            "preset": p.to_dict(),
            "steps_done": self.step,
            "started_from": self.started_from,
            "seconds": round(self.seconds, 1),
            "device": str(self.device),
            "validation": {
                "tasks": self.validation_tasks,
                "objective": result["objective"],
                "unsafe_share": result["unsafe_share"],
            },
            "trainer_version": __version__,
            "torch_version": torch.__version__,
        }
        with self._writing():
            save_policy(network, self.policy_path, header)

    # -- log --------------------------------------------------------------------------------

    def _open_log(self, resume):
        if self.rank > 0:
            return
        if self.writer_class is not None:
            self.writer = self.writer_class(self.out / "tensorboard", purge_step=self.step + 1)
        path = self.out / "log.csv"
        rows = []
        if resume and path.exists():
            # Steps after the checkpoint are done again, so their lines go.
            with path.open(newline="", encoding="utf-8") as file:
                rows = [
                    row
                    for row in csv.DictReader(file)
                    if (row["step"] or "").isdigit() and int(row["step"]) <= self.step
                ]
        temporary = path.with_suffix(".tmp")
        with self._writing(), temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
        os.replace(temporary, path)
        self.log_path = path

    def _log(self, rows):
        if self.rank > 0:
            return
        with self._writing(), self.log_path.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, COLUMNS).writerows(rows)
        if self.writer_class is not None:
            for row in rows:
                for name, value in row.items():
                    if isinstance(value, float) and name != "seconds":
                        self.writer.add_scalar(name, value, row["step"])
            self.writer.flush()

    def _bar(self):
        return tqdm(
            total=self.preset.steps,
            initial=self.step,
            desc=self.preset.name,
            unit="step",
            disable=not self.progress or self.rank > 0,
            dynamic_ncols=True,
        )


def _summary_writer():
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise TrainingError(
            'tensorboard is missing: pip install "sklearn-asal[tensorboard]", or leave the option '
            "out; log.csv has the same numbers."
        ) from error
    return SummaryWriter


class _Interrupt:
    """Turns the first Ctrl-C into a request to stop after the current step."""

    def __enter__(self):
        self.asked = False
        self.before = None
        if threading.current_thread() is threading.main_thread():
            self.before = signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, *_):
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *_):
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)
