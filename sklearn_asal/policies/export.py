"""A policy as an ONNX file, for controllers without Python."""

import contextlib
import functools
import io
import json
import math
import warnings

import torch
from torch import nn

from .._typing import StrPath
from ..exceptions import PolicyFileError
from .registry import load_policy, resolve
from .runtime import LARGEST

_OPSET = 17  # the first with LayerNormalization


def export_onnx(policy: StrPath, path: StrPath, *, safe: bool | None = None) -> None:
    """Write a policy as an ONNX graph that any ONNX runtime can evaluate.

    The graph maps float32 inputs ``budget`` of shape (B,), ``X`` (B, n, n_features),
    ``y`` (B, n), for a safe policy ``margin`` (B, n), and the bool ``mask`` (B, n) to ``x``,
    (B, n_features). B and n are free. Everything is at unit scale: ``X`` and ``x`` map the bounds
    to the unit cube, ``y`` is ``(y - y_loc) / y_scale``, ``margin`` is
    ``(z - safety_threshold) / z_scale`` with its sign turned where safe is below (of several limits
    the smallest). ``mask`` is True where an observation is real, False for padding, whose content
    is ignored, whatever it is. Where a campaign has no real observation ``x`` is NaN. ``budget``
    counts the queries left, this one included; what is below 1, NaN or infinite counts as 1. As in
    ``query``, numbers beyond a million count as that, and a campaign that is longer than the
    policy's ``max_budget`` goes through its plan in slow motion. The metadata of the file hold the
    policy's header.

    ``x`` is the network's own answer: what queriers do to it afterwards, such as moving a proposal
    that repeats a measured point, is not in the graph.

    Parameters
    ----------
    policy : str or path-like
        Name of a shipped policy or a policy file.
    path : path-like
        File to write.
    safe : bool, optional
        Which kind is meant; None accepts ``"safe-2d"``, ``"2d"`` or a path of either kind.

    Raises
    ------
    ImportError
        The package ``onnx`` is missing; the extra ``onnx`` installs it.
    PolicyNotFoundError, PolicyFileError
        See :func:`~sklearn_asal.policies.load_policy`. Nor can a policy be exported that infers
        hyperparameters, such as ``"any"``, or picks candidates, such as ``"aline-2d"``.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "writing ONNX files needs the package onnx: pip install 'sklearn-asal[onnx]'."
        ) from error
    if safe is None:
        policy, safe = resolve(policy)
    network, header = load_policy(policy, safe=safe)
    kind = header["architecture"]["kind"]
    if kind in ("inference", "aline"):
        does = "infers hyperparameters, and models with these choose the next input"
        if kind == "aline":
            does = "picks one of several candidates"
        raise PolicyFileError(
            f"policy {str(policy)!r} {does}; that cannot be one graph from observations to an "
            "input. Export a policy by name, such as '2d', or one of "
            "your own."
        )
    model = onnx.load_model_from_string(_graph(network, header))
    onnx.helper.set_model_props(model, {"header": json.dumps(header)})
    onnx.checker.check_model(model)
    onnx.save(model, path)


class DeployedPolicy(nn.Module):
    """All that ``query`` does to observations at unit scale, as one module.

    Parameters
    ----------
    network : ReaderNetwork or TransformerNetwork
    header : dict
        Of the policy file.
    """

    def __init__(self, network, header):
        super().__init__()
        self.network = network
        self.longest, self.n_init = header["max_budget"], header.get("n_init", 1)

    def forward(self, budget, X, *values_and_mask):
        """The next input.

        Parameters
        ----------
        budget : Tensor of shape (B,)
            Queries left, this one included.
        X : Tensor of shape (B, n, n_features)
        *values_and_mask : Tensor of shape (B, n)
            Outputs, for a safe policy margins, and the mask of real observations.

        Returns
        -------
        Tensor of shape (B, n_features)
            Inside the unit cube; NaN where no observation is real.
        """
        *values, mask = values_and_mask
        X = _of_real(X, mask.unsqueeze(-1))
        y, *margin = (_of_real(value, mask) for value in values)
        n_real = mask.sum(1)
        told = self._told(budget, n_real)
        # A graph has no inputs without use, and some networks have none for the budget.
        x = self.network(told, X, y, *margin, mask=mask) + 0 * told.unsqueeze(-1)
        return x.masked_fill(n_real.unsqueeze(-1) < 1, math.nan)

    def _told(self, budget, n_real):
        """As :func:`~sklearn_asal.policies.runtime.told_budget` does."""
        # No comparison holds for NaN.
        budget = budget.masked_fill(~((budget >= 1) & (budget < math.inf)), 1.0)
        whole = budget + (n_real.to(budget.dtype) - self.n_init).clamp_min(0)
        return (budget * (self.longest / whole).clamp_max(1)).clamp_min(1)


def _of_real(values, mask):
    """Values of limited size; zeros for padding."""
    return values.masked_fill(~mask, 0.0).clamp(-LARGEST, LARGEST)


def _graph(network, header):
    """The serialised graph."""
    names = ["budget", "X", "y", *["margin"][: network.safe], "mask"]
    single = functools.partial(torch.ones, dtype=torch.float32)  # an example, of any size
    inputs = [single(2), single(2, 3, network.n_features)]
    inputs += [single(2, 3) for _ in names[2:-1]] + [torch.ones(2, 3, dtype=torch.bool)]
    axes = {name: {0: "B", 1: "n"} for name in names} | {"budget": {0: "B"}, "x": {0: "B"}}
    file = io.BytesIO()
    with _single_precision(), warnings.catch_warnings():
        # The exporter by tracing is called legacy, but is there in every version of torch, writes
        # half of what the other does, and needs neither onnxscript nor its seconds of start-up.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            DeployedPolicy(network, header).eval(),
            tuple(inputs),
            file,
            input_names=names,
            output_names=["x"],
            dynamic_axes=axes,
            opset_version=_OPSET,
            dynamo=False,
        )
    return file.getvalue()


@contextlib.contextmanager
def _single_precision():
    """While a graph is traced, whose constants are of torch's default type."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(default)
