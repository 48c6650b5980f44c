"""Layers that the networks share."""

import functools

import torch
from torch import nn

# In single precision, whatever the host's default is.
Linear = functools.partial(nn.Linear, dtype=torch.float32)
LayerNorm = functools.partial(nn.LayerNorm, dtype=torch.float32)


def mlp(n_inputs, hidden, n_outputs, activation):
    """A multilayer perceptron with one hidden layer.

    Parameters
    ----------
    n_inputs, hidden, n_outputs : int
        Widths.
    activation : type
        Class of the activation, such as ``torch.nn.SiLU``.

    Returns
    -------
    torch.nn.Sequential
    """
    return nn.Sequential(Linear(n_inputs, hidden), activation(), Linear(hidden, n_outputs))


class _Clip(torch.autograd.Function):
    """``clamp(h, -1, 1)`` with the projected gradient: outside, only what leads back passes."""

    @staticmethod
    def forward(ctx, h):
        ctx.save_for_backward(h)
        return h.clamp(-1, 1)

    @staticmethod
    def backward(ctx, gradient):
        (h,) = ctx.saved_tensors
        away = ((h > 1) & (gradient < 0)) | ((h < -1) & (gradient > 0))
        return gradient.masked_fill(away, 0.0)


class _Between(torch.autograd.Function):
    """``clamp(x, low, high)`` with the projected gradient; at an end it goes to that end, too."""

    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x, low, high)
        return torch.minimum(torch.maximum(x, low), high)

    @staticmethod
    def backward(ctx, gradient):
        x, low, high = ctx.saved_tensors
        below, above = x < low, x > high
        away = (above & (gradient < 0)) | (below & (gradient > 0))
        return tuple(gradient.masked_fill(mask, 0.0) for mask in (away, ~below, ~above))


_OUTPUTS = {"clip": _Clip.apply, "tanh": torch.tanh}


def reach(earlier, step):
    """Interval of a lagged feature, given the earlier one.

    Parameters
    ----------
    earlier : Tensor
        Values on the unit interval.
    step : float
        Largest difference of the two.

    Returns
    -------
    low, high : Tensor
        Of the shape of ``earlier``, on the unit interval.
    """
    return (earlier - step).clamp_min(0), (earlier + step).clamp_max(1)


def bounded(h, architecture):
    """Output of the last linear layer, mapped into the unit cube and within the lags' steps.

    Parameters
    ----------
    h : Tensor of shape (..., n_features)
    architecture : dict
        Complete; its ``output`` and ``lags``.

    Returns
    -------
    Tensor of shape (..., n_features)
    """
    x = 0.5 + 0.5 * _OUTPUTS[architecture["output"]](h)
    if not architecture["lags"]:
        return x
    columns = list(x.unbind(-1))
    for later, earlier, step in architecture["lags"]:
        columns[later] = _Between.apply(columns[later], *reach(columns[earlier], step))
    return torch.stack(columns, -1)
