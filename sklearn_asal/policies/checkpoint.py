"""Policy files: safetensors with a JSON header; never pickle, never a download."""

import functools
import hashlib
import json
import os
import re
from importlib import resources
from pathlib import Path

import numpy as np

from ..exceptions import PolicyFileError, PolicyNotFoundError
from .architecture import build, build_runtime, check_weights, complete

FORMAT = "sklearn-asal-policy-1"


def save_policy(network, path, header=None):
    """Write a network and what is to be known of it to one file.

    Parameters
    ----------
    network : PolicyNetwork or ReaderNetwork
    path : path-like
        Written to a temporary file first and renamed, so that a reader never
        sees half a policy.
    header : dict, optional
        JSON-serialisable facts: priors, objective, training, validation. The
        architecture is added here.
    """
    from safetensors.numpy import save

    path = Path(path)
    header = dict(header or {}, architecture=network.architecture)
    header.setdefault("n_features", network.n_features)
    header.setdefault("safe", network.safe)
    header["max_budget"] = network.architecture["max_budget"]
    state = network.state_dict()
    tensors = {name: value.detach().cpu().contiguous().numpy() for name, value in state.items()}
    header["sha256"] = _digest(tensors)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(save(tensors, {"format": FORMAT, "header": json.dumps(header)}))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _digest(tensors):
    """SHA-256 of tensors, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(tensors[name].tobytes())
    return digest.hexdigest()


def read_header(path):
    """The JSON header of a policy file, without its tensors.

    Raises
    ------
    PolicyFileError
        The file is damaged, truncated or not a policy.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise PolicyFileError(
            f"policy file {str(path)!r} cannot be read ({error}); it is damaged, truncated or "
            "not a safetensors file. Copy it again or train the policy anew."
        ) from error
    if metadata.get("format") != FORMAT:
        raise PolicyFileError(
            f"{str(path)!r} is a safetensors file but not a sklearn-asal policy "
            f"(its format is {metadata.get('format')!r}, expected {FORMAT!r})."
        )
    try:
        header = json.loads(metadata["header"])
        for key in ("architecture", "n_features", "safe", "max_budget", "sha256"):
            header[key]
    except (KeyError, ValueError, TypeError) as error:
        raise PolicyFileError(
            f"the header of policy file {str(path)!r} is damaged: {error}"
        ) from error
    return header


@functools.cache
def _weights():
    return resources.files("sklearn_asal.policies") / "weights"


def shipped(safe):
    """Names of the shipped policies and the number of features of each.

    Parameters
    ----------
    safe : bool
        Safe policies or unconstrained ones.

    Returns
    -------
    dict of str to int
    """
    return dict(_shipped(_weights(), bool(safe)))


@functools.cache
def _shipped(folder, safe):
    prefix = "safe-" if safe else ""
    pattern = re.compile(rf"{prefix}((\d+)d[\w-]*)\.safetensors")
    names = sorted(entry.name for entry in folder.iterdir())
    found = [match for match in map(pattern.fullmatch, names) if match]
    return {match[1]: int(match[2]) for match in found}


def locate(name_or_path, *, safe):
    """The file of a shipped name or a path.

    Raises
    ------
    PolicyNotFoundError
        Neither a shipped name nor an existing file.
    """
    names = _shipped(_weights(), bool(safe))
    if safe and isinstance(name_or_path, str) and name_or_path.removeprefix("safe-") in names:
        name_or_path = name_or_path.removeprefix("safe-")  # the name of its preset
    if isinstance(name_or_path, str) and name_or_path in names:
        return Path(str(_weights() / f"{'safe-' if safe else ''}{name_or_path}.safetensors"))
    if isinstance(name_or_path, (str, os.PathLike)) and Path(name_or_path).is_file():
        return Path(name_or_path)
    kind = "safe" if safe else "unconstrained"
    _not_a_folder(name_or_path)
    raise PolicyNotFoundError(
        f"policy {str(name_or_path)!r} is neither a shipped {kind} policy nor a file. "
        f"Shipped {kind} policies: {', '.join(map(repr, names)) or 'none yet'}. "
        "Train one for your system with `python -m sklearn_asal train`."
    )


def _not_a_folder(name_or_path):
    if isinstance(name_or_path, (str, os.PathLike)) and os.path.isdir(name_or_path):
        raise PolicyNotFoundError(
            f"policy {str(name_or_path)!r} is a folder; of a training run pass the file "
            f"{str(Path(name_or_path) / 'policy.safetensors')!r}."
        )


def load_policy(name_or_path, *, safe):
    """Load a shipped policy by its name, or any policy by its path.

    Parameters
    ----------
    name_or_path : str or path-like
        For instance ``"2d"``.
    safe : bool
        Which kind is wanted; a shipped name means the policy of this kind.

    Returns
    -------
    network : PolicyNetwork or ReaderNetwork
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


def load_runtime(name_or_path, *, safe):
    """Load a policy for answers only: in NumPy, without torch.

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


def _of_kind(load, name_or_path, safe):
    path = locate(name_or_path, safe=safe).absolute()
    loaded, header = load(path, path.stat().st_mtime_ns)
    if loaded.safe != safe:
        kinds = ("safe", "AmortizedSafeQuerier"), ("unconstrained", "AmortizedQuerier")
        (kind, querier), (wanted, _) = kinds if loaded.safe else kinds[::-1]
        raise PolicyFileError(
            f"policy file {str(path)!r} holds a policy of the {kind} kind, and one of the {wanted} "
            f"kind is needed here; its querier is {querier}."
        )
    return loaded, header


def load_any(name_or_path):
    """Load a policy of either kind by a preset's name (``"safe-2d"``, ``"2d"``) or by its path.

    Returns and raises what :func:`load_policy` does.
    """
    name, safe = resolve(name_or_path)
    return load_policy(name, safe=safe)


def locate_any(name_or_path):
    """The file of a policy of either kind, given by a preset's name or by its path.

    Raises what :func:`resolve` does.
    """
    name, safe = resolve(name_or_path)
    return locate(name, safe=safe)


def resolve(name_or_path):
    """Name or path, and kind, of a policy given by a preset's name or by its path.

    A name without "safe-" is the unconstrained policy's, or the safe one's if there is no other.

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
    if os.path.isfile(name_or_path):
        return name_or_path, bool(read_header(name_or_path)["safe"])
    names = [f"safe-{known}" for known in shipped(True)] + list(shipped(False))
    _not_a_folder(name_or_path)
    raise PolicyNotFoundError(
        f"policy {name!r} is neither a preset whose policy is shipped nor a file. "
        f"Shipped: {', '.join(map(repr, names)) or 'none yet'}."
    )


def read_weights(path):
    """The header of a policy file and its weights, checked.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    header : dict
        Its ``"architecture"`` is complete.
    weights : dict of str to ndarray

    Raises
    ------
    PolicyFileError
        Damaged, truncated, foreign, or with weights that do not fit the header.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    header = read_header(path)
    try:
        if "pooling" not in header["architecture"]:
            # Those summed with a constant factor that no architecture has any more.
            raise ValueError("it is of an early version; train the policy anew")
        header["architecture"] = complete(header["architecture"])
        weights = load_file(path)
        check_weights(header["architecture"], weights)
    except (SafetensorError, RuntimeError, TypeError, ValueError) as error:
        raise PolicyFileError(
            f"the weights in policy file {str(path)!r} do not fit the architecture in its header "
            f"({error}); it is damaged or was written by another version."
        ) from error
    if _digest(weights) != header["sha256"]:
        raise PolicyFileError(
            f"the weights in policy file {str(path)!r} are damaged: their checksum is not the one "
            "in the header. Copy it again or train the policy anew."
        )
    if not all(np.isfinite(weight).all() for weight in weights.values()):
        raise PolicyFileError(
            f"policy file {str(path)!r} holds weights that are not finite; train the policy anew."
        )
    return header, weights


@functools.lru_cache(maxsize=16)
def _runtime(path, mtime):
    header, weights = read_weights(path)
    return build_runtime(header["architecture"], weights), header


@functools.lru_cache(maxsize=16)
def _network(path, mtime):
    import torch

    header, weights = read_weights(path)
    network = build(header["architecture"])
    network.load_state_dict({name: torch.from_numpy(part) for name, part in weights.items()})
    network.requires_grad_(False)
    return network.eval(), header
