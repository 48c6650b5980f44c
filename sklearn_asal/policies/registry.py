"""Policies by name or path; never a download."""

import functools
import os
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import StrPath
from ..exceptions import PolicyFileError, PolicyNotFoundError
from ..once import once
from .aline_runtime import ALINERuntime
from .checkpoint import read_header, read_weights
from .inference_runtime import InferenceRuntime
from .pfn_runtime import PFNRuntime
from .reader_runtime import ReaderRuntime

if TYPE_CHECKING:
    from .reader import ReaderNetwork
    from .runtime import Runtime
    from .transformer import TransformerNetwork

# The paper's prior on functions of two inputs: mean lengthscale, noise.
_LENGTHSCALE, _NOISE = 0.3, (0.01, 0.2)
#: Name of the policy for any number of features, with and without a limit.
ANY = "any"
#: Name of the prior-data fitted network, which is a surrogate and no policy.
PFN = "pfn"
#: What else policy "any" is called.
INFERRING = "auto", ANY, f"safe-{ANY}"
# Files of other methods' networks.
_BASELINE = re.compile(r"((?:aline|dad)-(\d+)d)\.safetensors")


@functools.cache
def weights_folder() -> Any:
    """Folder of the shipped policies.

    Returns
    -------
    path-like
    """
    return resources.files("sklearn_asal.policies") / "weights"


def shipped(safe: bool) -> dict[str, int | None]:
    """Names of the shipped policies and the number of features of each.

    Parameters
    ----------
    safe : bool
        Safe policies or unconstrained ones.

    Returns
    -------
    dict of str to int or None
        None for the policy of any number of features.
    """
    return dict(_shipped(weights_folder(), bool(safe)))


@functools.cache
def _shipped(folder, safe):
    prefix = "safe-" if safe else ""
    pattern = re.compile(rf"{prefix}((\d+)d[\w-]*)\.safetensors")
    names = sorted(entry.name for entry in folder.iterdir())
    found = [match for match in map(pattern.fullmatch, names) if match]
    of_any = {ANY: None} if f"{ANY}.safetensors" in names else {}
    return of_any | {match[1]: int(match[2]) for match in found}


def baselines() -> dict[str, int]:
    """Names of the shipped networks of other methods, and the number of features of each.

    They are unconstrained, for comparison, and nothing recommends them.

    Returns
    -------
    dict of str to int
    """
    return dict(_baselines(weights_folder()))


@functools.cache
def _baselines(folder):
    names = sorted(entry.name for entry in folder.iterdir())
    found = [match for match in map(_BASELINE.fullmatch, names) if match]
    return {match[1]: int(match[2]) for match in found}


def locate(name_or_path: StrPath, *, safe: bool) -> Path:
    """The file of a shipped name or a path.

    Parameters
    ----------
    name_or_path : str or path-like
        For instance ``"2d"``.
    safe : bool
        Which kind a shipped name means.

    Returns
    -------
    Path

    Raises
    ------
    PolicyNotFoundError
        Neither a shipped name nor an existing file.
    """
    names = _shipped(weights_folder(), bool(safe))
    if safe and isinstance(name_or_path, str) and name_or_path.removeprefix("safe-") in names:
        name_or_path = name_or_path.removeprefix("safe-")  # the name of its preset
    if isinstance(name_or_path, str) and name_or_path in names:
        prefix = "safe-" if safe and name_or_path != ANY else ""
        return Path(str(weights_folder() / f"{prefix}{name_or_path}.safetensors"))
    if isinstance(name_or_path, (str, os.PathLike)) and Path(name_or_path).is_file():
        return Path(name_or_path)
    if isinstance(name_or_path, str) and name_or_path in baselines():
        # Of the kind that they are: who wants a safe one is told.
        return Path(str(weights_folder() / f"{name_or_path}.safetensors"))
    kind = "safe" if safe else "unconstrained"
    _not_a_folder(name_or_path)
    if not isinstance(name_or_path, (str, os.PathLike)):
        raise PolicyNotFoundError(
            f"policy must be a name or a path, got {type(name_or_path).__name__}; all other "
            "parameters are given by name, such as bounds=..."
        )
    others = "" if safe else ", ".join(map(repr, baselines()))
    raise PolicyNotFoundError(
        f"policy {str(name_or_path)!r} is neither a shipped {kind} policy nor a file. "
        f"Shipped {kind} policies: {', '.join(map(repr, names)) or 'none yet'}"
        f"{others and f'; of other methods: {others}'}. "
        "Train one for your system with `python -m sklearn_asal train`."
    )


def _not_a_folder(name_or_path):
    if isinstance(name_or_path, (str, os.PathLike)) and os.path.isdir(name_or_path):
        raise PolicyNotFoundError(
            f"policy {str(name_or_path)!r} is a folder; of a training run pass the file "
            f"{str(Path(name_or_path) / 'policy.safetensors')!r}."
        )


@dataclass(frozen=True, eq=False)
class Policy:
    """A policy in use, and what is to be known of it.

    Parameters
    ----------
    runtime : Runtime
    header : dict
        Of its file.
    path : Path or None
        None for a shipped policy, whose file does not change.
    version : tuple
        Of the file when it was loaded.
    """

    runtime: object
    header: dict
    path: Path | None
    version: tuple

    @property
    def is_current(self):
        """Whether its file is still the one that was loaded, as far as there is one."""
        if self.path is None:
            return True
        try:
            return _version(self.path) == self.version
        except OSError:
            return False

    @property
    def infers(self):
        """Whether it infers hyperparameters, and proposes no points by itself."""
        return isinstance(self.runtime, InferenceRuntime)

    @property
    def picks(self):
        """Whether it picks one of several candidates, and has no notion of safety (ALINE)."""
        return isinstance(self.runtime, ALINERuntime)

    @property
    def max_budget(self):
        """Queries of the longest campaign in training; None where there is no plan."""
        return self.header["max_budget"]

    @property
    def n_init(self):
        """Initial observations in training."""
        return self.header.get("n_init", 1)

    @property
    def safe_centre(self):
        """Where, along each axis, the safe region was centred in training: low and high."""
        centre = self.header.get("preset", {}).get("safe_centre", {})
        return centre.get("low", 0.5), centre.get("high", 0.5)

    @once
    def lengthscale(self):
        """Mean lengthscale of the outputs it was trained on, for all features or for each."""
        return self._mean("lengthscale")

    @once
    def safety_lengthscale(self):
        """Mean lengthscale of the safety margins it was trained on."""
        return self._mean("safety_lengthscale")

    def _mean(self, function):
        prior = self.header.get("preset", {}).get(function)
        if prior is None:
            return _LENGTHSCALE
        part = {name: np.asarray(value) for name, value in prior.items() if name != "kind"}
        if prior["kind"] == "shifted-exponential":
            return part["shift"] + 1 / part["rate"]
        if prior["kind"] == "log-uniform":
            return (part["high"] - part["low"]) / np.log(part["high"] / part["low"])
        return 0.5 * (part["low"] + part["high"])

    @once
    def noise_std(self):
        """Three noise standard deviations that stand for those it was trained with."""
        low, high = self.header.get("noise_std", _NOISE)
        return tuple((low + (high - low) * np.array([1, 3, 5]) / 6).tolist())

    @property
    def unsafe_share(self):
        """Share of unsafe queries in its validation."""
        return (self.header.get("validation") or {}).get("unsafe_share") or 0.0


def find(policy: StrPath, n_features: int, safe: bool) -> Policy:
    """The policy that a querier is to use.

    Parameters
    ----------
    policy : str or path-like
        A name, a path, or "auto".
    n_features : int
    safe : bool
        Which kind.

    Returns
    -------
    Policy

    Raises
    ------
    ValueError
        The policy is for another number of features.
    PolicyNotFoundError, PolicyFileError
        See :func:`load_policy`.
    """
    if isinstance(policy, str) and policy == "auto":
        policy = ANY
    path = locate(policy, safe=safe)
    version = _version(path)
    runtime, header = load_runtime(policy, safe=safe)
    if runtime.n_features not in (None, n_features):
        fitting = [name for name, size in shipped(safe).items() if size == n_features]
        raise ValueError(
            f"X has {n_features} features, but policy {os.fspath(policy)!r} takes "
            f"{runtime.n_features}. {' and '.join(map(repr, [ANY, *fitting]))} "
            f"{'fit' if fitting else 'fits'}."
        )
    is_shipped = path.parent == weights_folder()
    return Policy(runtime, header, None if is_shipped else path, version)


def infers(policy: StrPath) -> bool:
    """Whether a policy infers hyperparameters, and proposes no points by itself.

    Parameters
    ----------
    policy : str or path-like
        A name, a path, or "auto".

    Returns
    -------
    bool
        False where it cannot be read.
    """
    return _kind(policy) == "inference"


def picks(policy: StrPath) -> bool:
    """Whether a policy picks one of several candidates, as ALINE does.

    Parameters
    ----------
    policy : str or path-like
        A name, a path, or "auto".

    Returns
    -------
    bool
        False where it cannot be read.
    """
    return _kind(policy) == "aline"


def draws(policy: StrPath) -> bool:
    """Whether candidates are drawn for a policy: it infers hyperparameters, or picks.

    Parameters
    ----------
    policy : str or path-like
        A name, a path, or "auto".

    Returns
    -------
    bool
        False where it cannot be read.
    """
    return _kind(policy) in ("inference", "aline")


def _kind(policy):
    """Of the network; None where its file cannot be read, or is a shipped policy by name."""
    if isinstance(policy, str):
        if policy in INFERRING:
            return "inference"
        if policy in shipped(True) or policy in shipped(False):
            return None
        if policy in baselines():
            return "aline" if policy.startswith("aline") else None
    try:
        path = Path(policy).absolute()
        return _header(path, _version(path))["architecture"].get("kind")
    except (AttributeError, OSError, TypeError, PolicyFileError):
        return None


@functools.lru_cache(maxsize=16)
def _header(path, version):
    return read_header(path)


def longer(n_features: int, safe: bool) -> str | None:
    """Name of the shipped policy for long campaigns.

    Parameters
    ----------
    n_features : int
    safe : bool

    Returns
    -------
    str or None
        None if there is none.
    """
    name = f"{n_features}d-long"
    return name if name in shipped(safe) else None


def _version(path):
    """What tells a file from another, and from itself written anew."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def load_policy(
    name_or_path: StrPath, *, safe: bool
) -> tuple["ReaderNetwork | TransformerNetwork", dict[str, Any]]:
    """Load the network of a shipped policy by its name, or of any policy by its path.

    Parameters
    ----------
    name_or_path : str or path-like
        For instance ``"2d"``.
    safe : bool
        Which kind is wanted; a shipped name means the policy of this kind.

    Returns
    -------
    network : TransformerNetwork or ReaderNetwork
        In evaluation mode, on the CPU. Shared between callers: treat it as read-only.
    header : dict

    Raises
    ------
    PolicyNotFoundError
        No such name or file.
    PolicyFileError
        Damaged, truncated, foreign, or a policy of the other kind.
    """
    return _of_kind(_network, name_or_path, safe)


def load_runtime(name_or_path: StrPath, *, safe: bool) -> tuple["Runtime", dict[str, Any]]:
    """Load a policy for answers only: a reader in NumPy, without torch, others in torch.

    Parameters
    ----------
    name_or_path, safe
        See :func:`load_policy`, also for the errors raised.

    Returns
    -------
    runtime : Runtime
        Shared between callers.
    header : dict
    """
    return _of_kind(_runtime, name_or_path, safe)


def load_inference(name_or_path: StrPath) -> InferenceRuntime:
    """Load a network that infers hyperparameters, such as that of policy ``any``.

    Parameters
    ----------
    name_or_path : str or path-like

    Returns
    -------
    InferenceRuntime
        Shared between callers.

    Raises
    ------
    PolicyNotFoundError
        No such name or file.
    PolicyFileError
        Damaged, foreign, or a policy that proposes points by itself.
    """
    path = locate(name_or_path, safe=False).absolute()
    runtime, _ = _runtime(path, _version(path))
    if not isinstance(runtime, InferenceRuntime):
        raise PolicyFileError(
            f"policy file {str(path)!r} proposes points and infers no hyperparameters; take "
            f"{ANY!r}, or a file of `python -m sklearn_asal train {ANY}`."
        )
    return runtime


def load_pfn(name_or_path: StrPath) -> PFNRuntime:
    """Load a prior-data fitted network.

    Parameters
    ----------
    name_or_path : str or path-like
        "pfn" is the shipped one.

    Returns
    -------
    PFNRuntime
        Shared between callers.

    Raises
    ------
    PolicyNotFoundError
        No such name or file.
    PolicyFileError
        Damaged, foreign, or a policy.
    """
    path = locate_pfn(name_or_path).absolute()
    runtime, _ = _runtime(path, _version(path))
    if not isinstance(runtime, PFNRuntime):
        raise PolicyFileError(
            f"policy file {str(path)!r} holds a policy and no prior-data fitted network; take "
            f"{PFN!r}, or a file of `python -m sklearn_asal train {PFN}`."
        )
    return runtime


def locate_pfn(name_or_path: StrPath) -> Path:
    """The file of a prior-data fitted network.

    Parameters
    ----------
    name_or_path : str or path-like
        "pfn" is the shipped one.

    Returns
    -------
    Path

    Raises
    ------
    PolicyNotFoundError
        No such name or file.
    """
    if isinstance(name_or_path, str) and name_or_path == PFN:
        name_or_path = Path(str(weights_folder() / f"{PFN}.safetensors"))
    if isinstance(name_or_path, (str, os.PathLike)) and Path(name_or_path).is_file():
        return Path(name_or_path)
    _not_a_folder(name_or_path)
    raise PolicyNotFoundError(
        f"{str(name_or_path)!r} is neither {PFN!r} nor a file. Train one with `python -m "
        f"sklearn_asal train {PFN}`."
    )


def _of_kind(load, name_or_path, safe):
    path = locate(name_or_path, safe=safe).absolute()
    loaded, header = load(path, _version(path))
    if header["architecture"]["kind"] == "pfn":
        raise PolicyFileError(
            f"policy file {str(path)!r} holds a prior-data fitted network, which proposes nothing "
            "by itself; pass GPQuerier or GPSafeQuerier surrogate=PFNSurrogate(...) of it."
        )
    if loaded.safe not in (None, safe):
        if name_or_path in baselines():
            raise PolicyFileError(
                f"policy {name_or_path!r} is for comparison without a limit, and has no notion of "
                f"safety. Take {ANY!r} or another of the safe policies, or AmortizedQuerier."
            )
        kinds = ("safe", "AmortizedSafeQuerier"), ("unconstrained", "AmortizedQuerier")
        (kind, querier), (wanted, _) = kinds if loaded.safe else kinds[::-1]
        raise PolicyFileError(
            f"policy file {str(path)!r} holds a policy of the {kind} kind, and one of the {wanted} "
            f"kind is needed here; its querier is {querier}."
        )
    return loaded, header


def load_any(
    name_or_path: StrPath,
) -> tuple["ReaderNetwork | TransformerNetwork", dict[str, Any]]:
    """Load a policy of either kind.

    Parameters
    ----------
    name_or_path : str or path-like
        A preset's name (``"safe-2d"``, ``"2d"``) or a path.

    Returns
    -------
    network, header
        See :func:`load_policy`, also for the errors raised.
    """
    name, safe = resolve(name_or_path)
    return load_policy(name, safe=safe)


def locate_any(name_or_path: StrPath) -> Path:
    """The file of a policy of either kind.

    Parameters
    ----------
    name_or_path : str or path-like
        A preset's name or a path.

    Returns
    -------
    Path

    Raises
    ------
    PolicyNotFoundError, PolicyFileError
        See :func:`load_policy`.
    """
    name, safe = resolve(name_or_path)
    return locate(name, safe=safe)


def resolve(name_or_path: StrPath) -> tuple[StrPath, bool]:
    """Name or path, and kind, of a policy.

    Parameters
    ----------
    name_or_path : str or path-like
        A preset's name or a path. A name without "safe-" is the unconstrained policy's, or the
        safe one's if there is no other.

    Returns
    -------
    name_or_path : str or path-like
        For :func:`load_policy` and the like.
    safe : bool

    Raises
    ------
    PolicyNotFoundError, PolicyFileError
        See :func:`load_policy`.
    """
    name = str(name_or_path)
    if name.startswith("safe-") and name.removeprefix("safe-") in shipped(True):
        return name.removeprefix("safe-"), True
    for safe in (False, True):
        if name in shipped(safe):
            return name, safe
    if name in baselines():
        return name, False
    if os.path.isfile(name_or_path):
        return name_or_path, bool(read_header(name_or_path)["safe"])
    names = [f"safe-{known}" for known in shipped(True) if known != ANY] + list(shipped(False))
    _not_a_folder(name_or_path)
    raise PolicyNotFoundError(
        f"policy {name!r} is neither a preset whose policy is shipped nor a file. "
        f"Shipped: {', '.join(map(repr, names)) or 'none yet'}."
    )


@functools.lru_cache(maxsize=16)
def _runtime(path, version):
    header, weights = read_weights(path)
    return _runtime_class(header["architecture"]["kind"])(header["architecture"], weights), header


def _runtime_class(kind):
    if kind == "reader":
        return ReaderRuntime
    if kind == "inference":
        return InferenceRuntime
    if kind == "pfn":
        return PFNRuntime
    if kind == "aline":
        return ALINERuntime
    from .torch_runtime import TorchRuntime

    return TorchRuntime


@functools.lru_cache(maxsize=16)
def _network(path, version):
    import torch

    from .networks import restore

    header, weights = read_weights(path)
    weights = {name: torch.from_numpy(weight) for name, weight in weights.items()}
    return restore(header["architecture"], weights), header
