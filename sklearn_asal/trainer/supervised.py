"""What trainings by supervised learning share: steps, checkpoints, validation, resuming."""

import contextlib
import csv
import math
import time
from pathlib import Path

import joblib
import numpy as np
import torch
from tqdm import tqdm

from .. import __version__
from ..policies.checkpoint import save_policy
from .loop import TrainingError, _Interrupt, read_state, write_state

_LAST_RATE, _WARM_UP, _DECAY, _CLIP = 1e-5, 200, 1e-4, 1.0
_COLUMNS = "step", "seconds", "loss", "validation"


class SupervisedTrainer:
    """Train a network on simulated examples; everything it needs to go on lives in one folder.

    The folder holds ``policy.safetensors`` (the best network so far in validation), ``state.pt``
    and ``log.csv``.

    Subclasses write ``_begin``, ``_loss`` and ``_score``.

    Parameters
    ----------
    out : path-like
        The folder of the run; made if missing.
    settings : dict
        All that decides the result, ``steps`` and ``seed`` among it; a run is resumed with the
        same only.
    threads : int, optional
        By default one for each core.
    save_every : float, default=120
        Seconds between two checkpoints.
    progress : bool, default=True
        Whether to show progress bars.
    max_seconds : float, optional
        Stop after this long, as Ctrl-C does; the run can be resumed.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C ended the last run before its last step.
    """

    #: Name of what is trained, as the command line has it.
    name = ""
    #: Peak of the learning rate.
    rate = 1e-3
    #: Steps between two validations.
    every = 500

    def __init__(
        self,
        out,
        settings,
        *,
        threads=None,
        save_every=120.0,
        progress=True,
        max_seconds=None,
    ):
        self.out = Path(out)
        self.settings, self.steps, self.seed = settings, settings["steps"], settings["seed"]
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
            Best score in validation.

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

    def _simulate(self, is_over):
        """Make what all steps need; whether all is there then."""
        return True

    def _begin(self):
        """A freshly initialised network, and whatever :meth:`_loss` and :meth:`_score` need."""
        raise NotImplementedError

    def _loss(self, network, generator):
        """Loss of a step; what is random goes by the generator or by ``self.step``."""
        raise NotImplementedError

    def _score(self, network):
        """What validation says of a network: the higher, the better."""
        raise NotImplementedError

    def _validation(self):
        """What else the header of the policy file says of its validation."""
        return {}

    def _state(self, resume):
        self.step, self.seconds, self.best = 0, 0.0, -math.inf
        if not resume:
            if (self.out / "state.pt").exists():
                raise TrainingError(f"{self.out} already holds a run; pass --resume to go on.")
            self.out.mkdir(parents=True, exist_ok=True)
            write_state(self.out, {"settings": self.settings, "name": self.name})
            return None
        state = read_state(self.out)
        if state.get("settings") != self.settings:
            raise TrainingError(
                f"{self.out} holds a run with {state.get('settings')}, not {self.settings}; pass "
                "the same, or choose another folder."
            )
        return state if "network" in state else None

    def _train(self, state, is_over):
        generator = torch.Generator().manual_seed(self.seed)
        torch.manual_seed(self.seed)
        network = self._begin()
        optimizer = torch.optim.AdamW(network.parameters(), self.rate, weight_decay=_DECAY)
        if state is not None:
            network.load_state_dict(state["network"])
            optimizer.load_state_dict(state["optimizer"])
            generator.set_state(state["generator"])
            self.step, self.seconds, self.best = (state[k] for k in ("step", "seconds", "best"))
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
                for group in optimizer.param_groups:
                    group["lr"] = self._rate()
                loss = self._loss(network, generator)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), _CLIP)
                optimizer.step()
                losses.append(loss.item())
                self.step += 1
                bar.update()
                if self.step % self.every == 0 or self.step == self.steps:
                    self.seconds = time.monotonic() - clock
                    self._validate(network, np.mean(losses))
                    losses = []
        self._checkpoint(network, optimizer, generator)

    def _rate(self):
        part = 0.5 * (1 + math.cos(math.pi * self.step / self.steps))
        return _LAST_RATE + self.rate * part * min(1.0, self.step / _WARM_UP)

    def _validate(self, network, loss):
        with torch.inference_mode():
            score = self._score(network)
        new = not (self.out / "log.csv").exists()
        with open(self.out / "log.csv", "a", newline="") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(_COLUMNS)
            writer.writerow([self.step, f"{self.seconds:.0f}", f"{loss:.5f}", f"{score:.5f}"])
        if score > self.best:
            self.best = score
            header = {
                "preset": {"name": self.name},
                "training": self.settings,
                "version": __version__,
                "steps_done": self.step,
                "validation": {"objective": score, **self._validation()},
            }
            save_policy(network, self.policy_path, header)

    def _checkpoint(self, network, optimizer, generator):
        state = {
            "settings": self.settings,
            "name": self.name,
            "network": network.state_dict(),
            "optimizer": optimizer.state_dict(),
            "generator": generator.get_state(),
        }
        state |= {"step": self.step, "seconds": self.seconds, "best": self.best}
        write_state(self.out, state)


@contextlib.contextmanager
def _threads(n):
    """So many threads of torch."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
