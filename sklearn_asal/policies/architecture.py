"""What makes a policy's network: its arguments, and the names and shapes of its weights."""

import math

from scipy.stats import qmc

#: What an architecture can choose from.
CHOICES = {
    "kind": ("reader", "transformer", "inference", "pfn", "aline"),
    "pooling": ("sqrt", "sum"),
    "output": ("clip", "tanh"),
}
#: Number of Sobol anchors, after which they begin anew.
N_ANCHORS = 4096
# Of the files written before there was another kind.
_FIRST_KIND = "transformer"


def complete(architecture):
    """The arguments of a network, with the defaults where some are left out.

    Parameters
    ----------
    architecture : dict
        Arguments of :class:`~sklearn_asal.policies.reader.ReaderNetwork`,
        :class:`~sklearn_asal.policies.transformer.TransformerNetwork`,
        :class:`~sklearn_asal.policies.inference.InferenceNetwork` or
        :class:`~sklearn_asal.policies.aline.ALINENetwork`, and their ``"kind"``.

    Returns
    -------
    dict

    Raises
    ------
    TypeError, ValueError
        An unknown argument, or a value that makes no network.
    """
    if architecture.get("kind") in _COMPLETE:
        return _COMPLETE[architecture["kind"]](**architecture)
    full = _complete(**architecture)
    for key, known in CHOICES.items():
        if full[key] not in known:
            raise ValueError(f"{key} must be one of {', '.join(known)}, got {full[key]!r}")
    if full["hidden"] is None:
        full["hidden"] = 512 if full["kind"] == "transformer" else 256
    if full["embedding"] % full["heads"]:
        raise ValueError(f"{full['heads']} heads do not divide {full['embedding']} embeddings")
    if full["lead"] and full["kind"] != "reader":
        raise ValueError(f"lead is for kind='reader' only, got kind={full['kind']!r}")
    full["lags"] = checked_lags(full["lags"], full["n_features"])
    return full


def checked_lags(lags, n_features):
    """Lags as a tuple of (later, earlier, step).

    Parameters
    ----------
    lags : sequence of (int, int, float)
    n_features : int

    Returns
    -------
    tuple of (int, int, float)

    Raises
    ------
    ValueError
        They are not that, or not in an order in which each feature is settled when it is used.
    """
    try:
        lags = tuple((int(later), int(earlier), float(step)) for later, earlier, step in lags)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"lags must be a sequence of (later, earlier, step), got {lags!r}"
        ) from error
    used = set()
    for later, earlier, step in lags:
        used.add(earlier)
        if not (0 <= later < n_features and 0 <= earlier < n_features) or later in used:
            raise ValueError(
                "lags are (later, earlier, step), two different features of "
                f"{n_features}, each moved before others follow it; got {lags}"
            )
        if not 0 < step <= 1:
            raise ValueError(f"the step of a lag is a part of the bounds, in (0, 1]; got {step}")
    return lags


def _complete(
    n_features,
    safe=True,
    budget=True,
    *,
    kind=_FIRST_KIND,
    embedding=128,
    hidden=None,
    heads=8,
    layers=2,
    pooling="sqrt",
    output="clip",
    lags=(),
    lead=False,
    max_budget=40,
    standardize=True,
):
    return locals()


def _complete_inference(kind, own, shared, width=112, layers=3, components=6, max_budget=None):
    sizes = {"own": own, "shared": shared, "width": width, "layers": layers}
    return _of_sizes(kind, components=components, **sizes)


def _complete_pfn(
    kind, most_features=8, bars=100, width=128, hidden=256, heads=8, layers=2, max_budget=None
):
    sizes = {"most_features": most_features, "bars": bars, "width": width, "hidden": hidden}
    full = _of_sizes(kind, heads=heads, layers=layers, **sizes)
    if bars < 3:
        raise ValueError(f"bars must be at least 3, got {bars}")
    if width % heads:
        raise ValueError(f"{heads} heads do not divide a width of {width}")
    return full


def _of_sizes(kind, **sizes):
    for name, size in sizes.items():
        if not (isinstance(size, int) and size > 0):
            raise ValueError(f"{name} must be a positive integer, got {size!r}")
    # There is no plan for a number of queries.
    return {"kind": kind, **sizes, "max_budget": None}


def _complete_aline(
    kind, n_features, embedding=32, hidden=64, heads=4, layers=3, components=4, max_budget=20
):
    full = locals()
    for name, size in full.items():
        if name != "kind" and not (isinstance(size, int) and size > 0):
            raise ValueError(f"{name} must be a positive integer, got {size!r}")
    if embedding % heads:
        raise ValueError(f"{heads} heads do not divide {embedding} embeddings")
    return full


_COMPLETE = {
    "inference": _complete_inference,
    "pfn": _complete_pfn,
    "aline": _complete_aline,
}


def sobol_anchors(n_features):
    """Points near which a policy with ``lead`` begins, one for each number of observations.

    Parameters
    ----------
    n_features : int

    Returns
    -------
    ndarray of shape (4096, n_features)
        The Sobol sequence on [-1, 1); beyond 4095 observations it begins anew.
    """
    return 2 * qmc.Sobol(n_features, scramble=False).random(N_ANCHORS) - 1


def scaling(architecture):
    """Shift and factor that a complete architecture applies to its inputs and to the budget.

    A uniform variable on [0, 1] has standard deviation 1 / sqrt(12).

    Parameters
    ----------
    architecture : dict

    Returns
    -------
    x, budget : tuple of float
        Each is subtracted the first and multiplied with the second.
    """
    if not architecture["standardize"]:
        return (0.0, 1.0), (0.0, 1.0)
    longest = architecture["max_budget"]
    return (0.5, math.sqrt(12)), ((1 + longest) / 2, math.sqrt(12) / longest)


def check_weights(architecture, weights):
    """Compare names and shapes of weights with those of an architecture.

    Parameters
    ----------
    architecture : dict
        Complete.
    weights : dict of str to ndarray

    Raises
    ------
    ValueError
        A weight is missing, unknown or of another shape.
    """
    expected = {}

    def linear(name, *shape):
        expected[f"{name}.weight"], expected[f"{name}.bias"] = shape, shape[:1]

    if architecture["kind"] == "inference":
        expected |= {name: (architecture[name.split("_")[0]],) for name in _BUFFERS}
    if architecture["kind"] == "pfn":
        expected |= {"borders": (architecture["bars"] - 1,), "tails": (2,)}
        rates = [f"layers.{layer}.log_rate" for layer in range(architecture["layers"])]
        expected |= dict.fromkeys(rates, (architecture["heads"],))
    _WEIGHTS[architecture["kind"]](architecture, linear)
    if architecture.get("lead"):
        expected["lead"] = (architecture["n_features"],)
    for name in sorted({*expected, *weights}):
        shape = weights[name].shape if name in weights else None
        if shape != expected.get(name):
            raise ValueError(f"{name}: shape {shape}, expected {expected.get(name)}")


def _transformer(architecture, linear):
    D, embedding, hidden = (architecture[key] for key in ("n_features", "embedding", "hidden"))
    encoders = ("history", "safety_history")[: 1 + bool(architecture["safe"])]
    for encoder in encoders:
        linear(f"{encoder}.embed.0", hidden, D + 1)
        linear(f"{encoder}.embed.2", embedding, hidden)
        for layer in range(architecture["layers"]):
            name = f"{encoder}.layers.{layer}"
            linear(f"{name}.qkv", 3 * embedding, embedding)
            for part in ("out", "ff1", "ff2"):
                linear(f"{name}.{part}", embedding, embedding)
            for part in ("norm1", "norm2"):
                linear(f"{name}.{part}", embedding)
        linear(f"{encoder}.linear", embedding, embedding)
    _budget(architecture, linear)
    parts = len(encoders) + bool(architecture["budget"])
    linear("decision.0", hidden, embedding * parts)
    linear("decision.2", D, hidden)


def _reader(architecture, linear):
    D, embedding, hidden = (architecture[key] for key in ("n_features", "embedding", "hidden"))
    linear("embed.0", hidden, D + 1 + bool(architecture["safe"]))
    linear("embed.2", embedding, hidden)
    linear("project", embedding * (1 + 2 * architecture["layers"]), embedding)
    _budget(architecture, linear)
    readings = [f"readings.{i}" for i in range(architecture["layers"])]
    for name in readings:
        linear(f"{name}.norm", embedding)
        linear(f"{name}.ask", embedding, embedding)
        linear(f"{name}.out", embedding, embedding)
    for name in ("start", *(f"{name}.forth" for name in readings)):
        linear(f"{name}.norm", embedding)
        linear(f"{name}.up", hidden, embedding)
        linear(f"{name}.down", embedding, hidden)
    linear("norm", embedding)
    linear("head", D, embedding)
    if architecture["lead"]:
        linear("follow.0", hidden, D)
        linear("follow.2", embedding, hidden)


def _budget(architecture, linear):
    if architecture["budget"]:
        linear("budget.0", architecture["hidden"], 1)
        linear("budget.2", architecture["embedding"], architecture["hidden"])


def _inference(architecture, linear):
    width, components = architecture["width"], architecture["components"]
    linear("own_in", width, architecture["own"])
    linear("shared_in", width, architecture["shared"])
    for layer in range(architecture["layers"]):
        linear(f"own.{layer}", width, 3 * width)
        linear(f"shared.{layer}", width, 2 * width)
    linear("own_out", 2 * components, width)
    linear("shared_out", 3 * components, width)


def _pfn(architecture, linear):
    width, hidden = architecture["width"], architecture["hidden"]
    inputs = {"embed": architecture["most_features"], "value": 1}
    for name, size in inputs.items():
        linear(f"{name}.0", width, size)
        linear(f"{name}.2", width, width)
    linear("number", width, architecture["most_features"])
    for layer in range(architecture["layers"]):
        name = f"layers.{layer}"
        linear(f"{name}.query", width, width)
        linear(f"{name}.known", 2 * width, width)
        linear(f"{name}.out", width, width)
        linear(f"{name}.ff1", hidden, width)
        linear(f"{name}.ff2", width, hidden)
        linear(f"{name}.norm1", width)
        linear(f"{name}.norm2", width)
    linear("norm", width)
    linear("head.0", width, width)
    linear("head.2", architecture["bars"], width)


def _aline(architecture, linear):
    D, embedding, hidden = (architecture[key] for key in ("n_features", "embedding", "hidden"))
    for name, n_inputs in (("context", D + 1), ("target", D), ("candidate", D)):
        linear(f"{name}.0", hidden, n_inputs)
        linear(f"{name}.2", embedding, hidden)
    layers = range(architecture["layers"])
    for name in (f"{part}.{layer}" for part in ("predicting", "picking") for layer in layers):
        for part in ("norm1", "norm2"):
            linear(f"{name}.{part}", embedding)
        for part in ("ask", "out"):
            linear(f"{name}.{part}", embedding, embedding)
        linear(f"{name}.offer", 2 * embedding, embedding)
        linear(f"{name}.up", hidden, embedding)
        linear(f"{name}.down", embedding, hidden)
    for name, n_outputs in (("predict", 3 * architecture["components"]), ("score", 1)):
        linear(f"{name}_norm", embedding)
        linear(f"{name}.0", hidden, embedding)
        linear(f"{name}.2", n_outputs, hidden)


_WEIGHTS = {
    "transformer": _transformer,
    "reader": _reader,
    "inference": _inference,
    "pfn": _pfn,
    "aline": _aline,
}
# What the inputs of an inference network are standardised with.
_BUFFERS = "own_mean", "own_std", "shared_mean", "shared_std"
