"""Training of the policy ``any``: simulate data sets, then learn to infer their hyperparameters."""

import os
import zipfile

import joblib
import numpy as np
import torch
from tqdm import tqdm

from ..policies.inference import InferenceNetwork
from ..settings import own_settings
from ..surrogates.evidence import N_OWN, N_SHARED
from .loop import TrainingError
from .supervised import SupervisedTrainer
from .systems import draw_examples

#: Data sets of one size, and of how many such sizes a file is made up.
SIZE, PER_FILE = 64, 40
# Batches of one number of features that a step learns from.
_TOGETHER = 8
# Files that are held out for validation.
_HELD_OUT = 8


class InferenceTrainer(SupervisedTrainer):
    """Train the network of policy ``any``; everything it needs to go on lives in one folder.

    The folder holds ``systems/`` (simulated data sets), ``policy.safetensors`` (the best network
    so far in validation), ``state.pt`` and ``log.csv``. The score in validation is the mean log
    density of a held-out hyperparameter.

    Parameters
    ----------
    out : path-like
        The folder of the run; made if missing.
    steps : int, default=30000
    files : int, default=800
        Of 2,560 simulated data sets each.
    seed : int, default=0
    threads, save_every, progress, max_seconds
        See :class:`~sklearn_asal.trainer.supervised.SupervisedTrainer`.
    **sizes
        Width, layers and components of
        :class:`~sklearn_asal.policies.inference.InferenceNetwork`.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C ended the last run before its last step.
    """

    name, rate = "any", 2e-3

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
        if files <= _HELD_OUT:
            raise ValueError(f"files must be more than the {_HELD_OUT} for validation, got {files}")
        super().__init__(
            out,
            {"steps": steps, "files": files, "seed": seed, **sizes},
            threads=threads,
            save_every=save_every,
            progress=progress,
            max_seconds=max_seconds,
        )
        self.files, self.sizes = files, sizes

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

    def _begin(self):
        self._held_out = self._read(0, _HELD_OUT)
        self._batches = self._read(_HELD_OUT, self.files)
        self._sizes = sorted(self._batches)
        self._share = torch.tensor([float(len(self._batches[size])) for size in self._sizes])
        network = InferenceNetwork(N_OWN, N_SHARED, **self.sizes)
        examples = [batch for same in self._held_out.values() for batch in same]
        network.standardize(*_together(examples))
        return network

    def _loss(self, network, generator):
        size = self._sizes[torch.multinomial(self._share, 1, generator=generator)]
        same = self._batches[size]
        chosen = torch.randint(len(same), (_TOGETHER,), generator=generator)
        return -_log_density(network, *map(torch.cat, zip(*(same[i] for i in chosen), strict=True)))

    def _score(self, network):
        held_out = self._held_out.values()
        scores = [_log_density(network, *parts) for same in held_out for parts in same]
        return torch.stack(scores).mean().item()

    def _read(self, start, stop):
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
