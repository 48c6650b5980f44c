"""The format of policy files: safetensors with a JSON header; never pickle."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import StrPath
from ..exceptions import PolicyFileError
from .architecture import check_weights, complete

FORMAT = "sklearn-asal-policy-1"


def save_policy(network: Any, path: StrPath, header: dict[str, Any] | None = None) -> None:
    """Write a network and what is to be known of it to one file.

    Parameters
    ----------
    network : TransformerNetwork, ReaderNetwork, InferenceNetwork, PFNNetwork or ALINENetwork
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


def read_header(path: StrPath) -> dict[str, Any]:
    """The JSON header of a policy file, without its tensors.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    dict

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


def read_weights(path: StrPath) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
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
        kind = header["architecture"].get("kind")
        if kind not in ("inference", "pfn", "aline") and "pooling" not in header["architecture"]:
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
