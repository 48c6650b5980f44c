"""Training of the policy ``any``: simulate data sets, then learn to infer their hyperparameters."""

import contextlib
import csv
import math
import os
import time
import zipfile
from pathlib import Path

import joblib
import numpy as np
import torch
from tqdm import tqdm

from .. import __version__
from ..policies.checkpoint import save_policy
from ..policies.inference import InferenceNetwork
from ..settings import own_settings
from ..surrogates.evidence import N_OWN, N_SHARED
from .loop import TrainingError, _Interrupt
from .systems import draw_examples

#: Data sets of one size, and of how many such sizes a file is made up.
SIZE, PER_FILE = 64, 40
# Batches of one number of features that a step learns from.
_TOGETHER = 8
# Files that are held out for validation.
_HELD_OUT = 8
_RATE, _LAST_RATE, _WARM_UP, _DECAY, _CLIP = 2e-3, 1e-5, 200, 1e-4, 1.0
_EVERY = 500
_COLUMNS = "step", "seconds", "loss", "validation"


class InferenceTrainer:
    """Train the network of policy ``any``; everything it needs to go on lives in one folder.

    The folder holds ``systems/`` (simulated data sets), ``policy.safetensors`` (the best network
    so far in validation), ``state.pt`` and ``log.csv``.

    Parameters
    ----------
    out : path-like
        The folder of the run; made if missing.
    steps : int, default=30000
    files : int, default=800
        Of 2,560 simulated data sets each.
    seed : int, default=0
    threads : int, optional
        By default one for each core.
    save_every : float, default=120
        Seconds between two checkpoints.
    progress : bool, default=True
        Whether to show progress bars.
    max_seconds : float, optional
        Stop after this long, as Ctrl-C does; the run can be resumed.
    **sizes
        Width, layers and components of
        :class:`~sklearn_asal.policies.inference.InferenceNetwork`.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C ended the last run before its last step.
    """

    def __init__(
        self,
        out,
        *,
        steps=30_000,
        files=800,
        seed=0,
        threads=None,
        save_every=120.0,
        progress=True,
        max_seconds=None,
        **sizes,
    ):
        self.out = Path(out)
        if files <= _HELD_OUT:
            raise ValueError(f"files must be more than the {_HELD_OUT} for validation, got {files}")
        self.settings = {"steps": steps, "files": files, "seed": seed, **sizes}
        self.steps, self.files, self.seed, self.sizes = steps, files, seed, sizes
        self.threads = threads or joblib.cpu_count()
        self.save_every = save_every
        self.progress = progress
        self.max_seconds = math.inf if max_seconds is None else max_seconds
        self.interrupted = False

    @property
    def policy_path(self):
        """File of the best network so far."""
        return self.out / "policy.safetensors"

    def run(self, resume=False):
        """Simulate what is missing, then train until the last step or Ctrl-C.

        Parameters
        ----------
        resume : bool, default=False
            Go on with the run in the folder.

        Returns
        -------
        float
            Best mean log density of a held-out hyperparameter.

        Raises
        ------
        TrainingError
            The folder already holds a run (and ``resume`` is off), or none or another one (and it
            is on).
        """
        end = time.monotonic() + self.max_seconds
        state = self._state(resume)
        with _Interrupt() as interrupt:

            def is_over():
                return interrupt.asked or time.monotonic() > end

            if self._simulate(is_over):
                with _threads(self.threads):
                    self._train(state, is_over)
            self.interrupted = interrupt.asked and self.step < self.steps
        return self.best

    def _state(self, resume):
        self.step, self.seconds, self.best = 0, 0.0, -math.inf
        path = self.out / "state.pt"
        if not resume:
            if path.exists():
                raise TrainingError(f"{self.out} already holds a run; pass --resume to go on.")
            self.out.mkdir(parents=True, exist_ok=True)
            self._save({"settings": self.settings})
            return None
        if not path.exists():
            raise TrainingError(f"{self.out} holds no run to resume; leave --resume out.")
        state = torch.load(path, weights_only=True)
        if state.get("settings") != self.settings:
            raise TrainingError(
                f"{self.out} holds a run with {state.get('settings')}, not {self.settings}; pass "
                "the same, or choose another folder."
            )
        return state if "network" in state else None

    def _simulate(self, is_over):
        """Make the files that are missing; whether all are there then."""
        folder = self.out / "systems"
        folder.mkdir(exist_ok=True)
        missing = [i for i in range(self.files) if not (folder / f"{i}.npz").exists()]
        # In parts, so that Ctrl-C has not to wait for all.
        for start in tqdm(
            range(0, len(missing), 4 * self.threads),
            desc="simulate",
            disable=not self.progress,
            leave=False,
        ):
            if is_over():
                return False
            try:
                joblib.Parallel(self.threads)(
                    joblib.delayed(_write_examples)(folder / f"{i}.npz", (self.seed, i))
                    for i in missing[start : start + 4 * self.threads]
                )
            except Exception:  # Ctrl-C reaches the other processes as well, which then break off
                if is_over():
                    return False
                raise
        return True

    def _train(self, state, is_over):
        held_out, batches = self._batches(0, _HELD_OUT), self._batches(_HELD_OUT, self.files)
        generator = torch.Generator().manual_seed(self.seed)
        torch.manual_seed(self.seed)
        network = InferenceNetwork(N_OWN, N_SHARED, **self.sizes)
        network.standardize(*_together([batch for same in held_out.values() for batch in same]))
        optimizer = torch.optim.AdamW(network.parameters(), _RATE, weight_decay=_DECAY)
        if state is not None:
            network.load_state_dict(state["network"])
            optimizer.load_state_dict(state["optimizer"])
            generator.set_state(state["generator"])
            self.step, self.seconds, self.best = (state[k] for k in ("step", "seconds", "best"))
        sizes = sorted(batches)
        share = torch.tensor([float(len(batches[size])) for size in sizes])
        clock, saved, losses = time.monotonic() - self.seconds, time.monotonic(), []
        with tqdm(
            total=self.steps, initial=self.step, desc="train", disable=not self.progress
        ) as bar:
            while self.step < self.steps:
                stop = is_over()
                if stop or time.monotonic() - saved > self.save_every:
                    self.seconds, saved = time.monotonic() - clock, time.monotonic()
                    self._checkpoint(network, optimizer, generator)
                if stop:
                    return
                same = batches[sizes[torch.multinomial(share, 1, generator=generator)]]
                chosen = torch.randint(len(same), (_TOGETHER,), generator=generator)
                batch = map(torch.cat, zip(*(same[i] for i in chosen), strict=True))
                for group in optimizer.param_groups:
                    group["lr"] = self._rate()
                loss = -_log_density(network, *batch)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), _CLIP)
                optimizer.step()
                losses.append(loss.item())
                self.step += 1
                bar.update()
                if self.step % _EVERY == 0 or self.step == self.steps:
                    self.seconds = time.monotonic() - clock
                    self._validate(network, held_out, np.mean(losses))
                    losses = []
        self._checkpoint(network, optimizer, generator)

    def _rate(self):
        part = 0.5 * (1 + math.cos(math.pi * self.step / self.steps))
        return _LAST_RATE + _RATE * part * min(1.0, self.step / _WARM_UP)

    def _batches(self, start, stop):
        """Batches of some files by number of features."""
        found = {}
        for i in range(start, stop):
            path = self.out / "systems" / f"{i}.npz"
            try:
                with np.load(path) as file:
                    for j in range(PER_FILE):
                        parts = [torch.from_numpy(file[f"{part}{j}"]) for part in range(4)]
                        found.setdefault(parts[0].shape[1], []).append(parts)
            except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
                raise TrainingError(
                    f"{path} is damaged ({error}); delete it and pass --resume, to make it anew."
                ) from error
        return found

    @torch.inference_mode()
    def _validate(self, network, held_out, loss):
        scores = [_log_density(network, *parts) for same in held_out.values() for parts in same]
        score = torch.stack(scores).mean().item()
        new = not (self.out / "log.csv").exists()
        with open(self.out / "log.csv", "a", newline="") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(_COLUMNS)
            writer.writerow([self.step, f"{self.seconds:.0f}", f"{loss:.5f}", f"{score:.5f}"])
        if score > self.best:
            self.best = score
            header = {
                "preset": {"name": "any"},
                "training": self.settings,
                "version": __version__,
                "steps_done": self.step,
                "validation": {"objective": score},
            }
            save_policy(network, self.policy_path, header)

    def _checkpoint(self, network, optimizer, generator):
        state = {
            "settings": self.settings,
            "network": network.state_dict(),
            "optimizer": optimizer.state_dict(),
            "generator": generator.get_state(),
        }
        self._save(state | {"step": self.step, "seconds": self.seconds, "best": self.best})

    def _save(self, state):
        temporary = self.out / f".state.{os.getpid()}.tmp"
        torch.save(state, temporary)
        os.replace(temporary, self.out / "state.pt")


@contextlib.contextmanager
def _threads(n):
    """So many threads of torch."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _log_density(network, own, shared, log_lengthscales, log_noises):
    """Mean log density of a hyperparameter."""
    density = network.log_density(own, shared, log_lengthscales, log_noises)
    return density.mean() / (log_lengthscales.shape[1] + 1)


def _together(batches):
    own = torch.cat([parts[0].flatten(0, 1) for parts in batches])
    return own, torch.cat([parts[1] for parts in batches])


@own_settings()
def _write_examples(path, seed):
    rng = np.random.default_rng(seed)
    arrays = {}
    for j in range(PER_FILE):
        for part, array in enumerate(draw_examples(rng, SIZE)):
            arrays[f"{part}{j}"] = array
    temporary = path.with_name(f".{path.name}")
    with open(temporary, "wb") as file:
        np.savez(file, **arrays)
    os.replace(temporary, path)
