"""The methods that are compared, by name (label appendix-experiment_details-gp_modeling).

``name:param=value,...`` is the method with other constructor parameters, see :func:`method_of`.

The Gaussian process methods use this package's surrogates as they come, with weak priors on the
hyperparameters, where the paper has pure maximum likelihood: little changes without a limit,
and with one, queries are safe more often.
"""

import ast
from dataclasses import dataclass, field, replace

from ..adapters.optional import adapter


@dataclass(frozen=True)
class Method:
    """How to make a querier.

    Parameters
    ----------
    querier : str
        Name of a class of ``sklearn_asal``, or of a class or function of the extra's adapter.
    params : dict
        Its constructor's parameters.
    safe : bool
        Whether it keeps safety measurements within limits, so that it needs a task that has them.
    label : str
        What tables and figures call it; the paper's name where it has one.
    extra : str
        The extra whose adapter it comes from, such as "botorch". Such methods are part of no suite.
    package : str
        The extra that its surrogate needs, such as "tabpfn". Without it its cells fail, and reports
        say why.
    in_suite : bool
        Whether a suite has it, if it has no extra.
    base, name : str
        Its name in ``METHODS``, and with the parameters that are stated, the same for all
        spellings.
    stated : dict
        Of a variant, the constructor parameters that its name states.
    """

    querier: str
    params: dict = field(default_factory=dict)
    safe: bool = False
    label: str = ""
    extra: str = ""
    package: str = ""
    in_suite: bool = True
    base: str = ""
    name: str = ""
    stated: dict = field(default_factory=dict)


def _amortized(surrogate, safe, label, **options):
    """A pretrained model with the paper's acquisition, compared at as many points."""
    params = {"surrogate": surrogate, "acquisition": "entropy", "n_candidates": 5000}
    label = f"{'Safe ' * safe}{label} AL"
    querier = "GPSafeQuerier" if safe else "GPQuerier"
    return Method(querier, params, safe, label, in_suite=False, **options)


#: What each name stands for.
METHODS = {
    "asal": Method("AmortizedSafeQuerier", {"guard": False}, True, "ASAL"),
    "asal-any": Method("AmortizedSafeQuerier", {"policy": "any"}, True, "ASAL, any"),
    "safe-ensemble": Method(
        "GPSafeQuerier",
        {"surrogate": "ensemble", "acquisition": "variance_reduction"},
        True,
        "Safe Ensemble AL",
    ),
    "safe-gp": Method("GPSafeQuerier", {"surrogate": "exact"}, True, "Safe GP AL"),
    "safe-svgp": Method("GPSafeQuerier", {"surrogate": "sparse"}, True, "Safe SVGP AL"),
    "safe-mgp": Method("GPSafeQuerier", {"surrogate": "mixture"}, True, "Safe MGP AL"),
    "safe-agp": _amortized("amortized", True, "AGP"),
    "safe-pfn": _amortized("pfn", True, "PFN"),
    "safe-tabpfn": _amortized("tabpfn", True, "TabPFN", package="tabpfn"),
    "min-unsafe": Method("GPSafeQuerier", {"acquisition": "min_unsafe"}, True, "MinUnsafe GP AL"),
    "safe-random": Method("GPSafeQuerier", {"acquisition": "random"}, True, "Safe Random"),
    "aal": Method("AmortizedQuerier", {}, False, "AAL"),
    "aal-any": Method("AmortizedQuerier", {"policy": "any"}, False, "AAL, any"),
    "ensemble": Method(
        "GPQuerier",
        {"surrogate": "ensemble", "acquisition": "variance_reduction"},
        False,
        "Ensemble AL",
    ),
    "gp": Method("GPQuerier", {"surrogate": "exact"}, False, "GP AL"),
    "svgp": Method("GPQuerier", {"surrogate": "sparse"}, False, "SVGP AL"),
    "mgp": Method("GPQuerier", {"surrogate": "mixture"}, False, "MGP AL"),
    "agp": _amortized("amortized", False, "AGP"),
    "pfn": _amortized("pfn", False, "PFN"),
    "tabpfn": _amortized("tabpfn", False, "TabPFN", package="tabpfn"),
    "random": Method("RandomQuerier", {}, False, "Random"),
    "botorch": Method("BoTorchQuerier", {}, False, "BoTorch, qNIPV", "botorch"),
    "skactiveml-greedy": Method("greedy_sampling", {}, False, "scikit-activeml, GSi", "skactiveml"),
    "skactiveml-committee": Method(
        "query_by_committee", {}, False, "scikit-activeml, QBC", "skactiveml"
    ),
    "modal-std": Method("ModalQuerier", {}, False, "modAL, max std", "modal"),
    # Of the policy for the task's number of features.
    "aline": Method("AmortizedQuerier", {"policy": "aline-{}d"}, False, "ALINE", in_suite=False),
    "dad": Method("AmortizedQuerier", {"policy": "dad-{}d"}, False, "DAD", in_suite=False),
}

# The tasks for which the paper gives sparse models 20 inducing points instead of 15.
_LARGER = "engine", "fluid"

# Shipped policies that were trained for one task.
_SPECIAL = {"fluid": "7d-fluid"}

#: The methods of each suite. Those of "al" run on safe tasks, too, and take no notice of safety.
SUITES = {
    suite: tuple(
        name
        for name, method in METHODS.items()
        if method.safe == (suite == "safe") and not method.extra and method.in_suite
    )
    for suite in ("al", "safe")
}


# What a campaign takes from the task and the seed, so that stating it would have no effect.
_OF_THE_TASK = "bounds", "budget", "random_state", "safety_threshold", "safe_when"


def base_of(name):
    """A method's name without the parameters that it states.

    Parameters
    ----------
    name : str

    Returns
    -------
    str
    """
    return name.partition(":")[0]


def label_of(name):
    """What tables and figures call a method.

    Parameters
    ----------
    name : str
        Names of somebody's own queriers are returned as they are.

    Returns
    -------
    str
    """
    base, _, stated = name.partition(":")
    if base not in METHODS:
        return name
    return ", ".join([METHODS[base].label, *filter(None, [stated])])


def method_of(name):
    """What a method's name stands for.

    Parameters
    ----------
    name : str
        One of ``METHODS``, or a variant: ``"name:param=value,..."`` with constructor parameters of
        the querier. Values are Python literals, strings in quotes, or guards and surrogates of
        this package with such parameters: ``"asal:guard=SafetyGuard(gamma=0.02),z_scale=2.0"``.

    Returns
    -------
    method : Method

    Raises
    ------
    ValueError
        No such method, or what follows its name is no list of parameters of its querier.
    """
    import sklearn_asal

    base, colon, text = name.partition(":")
    if base not in METHODS:
        raise ValueError(
            f"methods must be out of {', '.join(METHODS)}, also as name:param=value,...; got "
            f"{name!r}."
        )
    method = METHODS[base]
    if not colon:
        return replace(method, base=base, name=base)
    try:
        words = _keywords(_call(text))
        stated = {param: _value(node) for param, node in words.items()}
    except (SyntaxError, TypeError, ValueError) as error:
        raise ValueError(
            f"method {name!r} must be written name:param=value,... with each parameter once and "
            "Python literals as values, strings in quotes, or guards and surrogates such as "
            f"SafetyGuard(gamma=0.02) ({error})."
        ) from error
    home = adapter(method.extra) if method.extra else sklearn_asal
    known = getattr(home, method.querier)().get_params(deep=False)
    free = [param for param in known if param not in _OF_THE_TASK]
    for param in stated:
        if param in _OF_THE_TASK:
            raise ValueError(f"method {name!r}: {param} is set by the task; leave it out.")
        if param not in free:
            raise ValueError(
                f"method {name!r}: {method.querier} has no parameter {param!r}; it has "
                f"{', '.join(free)}."
            )
    text = ",".join(f"{param}={ast.unparse(node)}" for param, node in words.items())
    return replace(method, base=base, name=f"{base}:{text}", stated=stated)


def _call(text):
    """``f(text)``, parsed."""
    call = ast.parse(f"f({text})", mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not call.keywords:
        raise ValueError("no parameters")
    return call


def _keywords(call):
    """What a call states of each parameter, as nodes."""
    words = {word.arg: word.value for word in call.keywords}
    if call.args or None in words or len(words) < len(call.keywords):
        raise ValueError("each value needs a parameter of its own")
    return dict(sorted(words.items()))


def _value(node):
    """A literal, or an instance of a class of this package with literals as parameters."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return ast.literal_eval(node)
    from .. import SafetyGuard, surrogates

    known = {name: getattr(surrogates, name) for name in surrogates.__all__}
    known = {name: kind for name, kind in known.items() if hasattr(kind, "get_params")}
    known["SafetyGuard"] = SafetyGuard
    if node.func.id not in known:
        raise ValueError(f"{node.func.id} is none of {', '.join(sorted(known))}")
    words = _keywords(node)
    return known[node.func.id](**{param: ast.literal_eval(part) for param, part in words.items()})


def make(name, task, policy=None):
    """Build the querier that a method's name stands for.

    Parameters
    ----------
    name : str
        One of ``METHODS``, or a variant of one, see :func:`method_of`. Parameters that it states go
        before what the task and ``policy`` say.
    task : Task
        Whose tolerance ``gamma`` safe methods take, but for those of policy "any".
    policy : str or path-like, optional
        Policy file of the amortised methods; by default the shipped policy for the task's system,
        or else the general one that fits the data. An ensemble on a task with a policy of its own
        has the hyperparameters that are typical of that policy's training.

    Returns
    -------
    querier : querier

    Raises
    ------
    ValueError
        If there is no such method, or its parameters are not those of its querier.
    ImportError
        The method is another package's, which is not installed.
    """
    import sklearn_asal

    from ..policies.registry import find
    from ..surrogates import EnsembleGP, SparseGP

    method = method_of(name)
    home = adapter(method.extra) if method.extra else sklearn_asal
    querier = getattr(home, method.querier)(**method.params)
    known, n_features = querier.get_params(), len(task.bounds)
    surrogate, special = method.params.get("surrogate"), _SPECIAL.get(task.name)
    if surrogate == "sparse" and task.name in _LARGER:
        querier.set_params(surrogate=SparseGP(n_inducing=20))
    if surrogate == "ensemble" and special:
        # What is known of the system, as the policy's training knows it.
        typical = find(special, n_features, method.safe)
        querier.set_params(surrogate=EnsembleGP(typical.lengthscale, typical.noise_std))
    if "{}" in str(method.params.get("policy")):
        querier.set_params(policy=method.params["policy"].format(n_features))
    if known.get("policy") == "auto":
        querier.set_params(policy=policy or special or f"{n_features}d")
        if method.safe:
            querier.set_params(gamma=task.gamma)
    elif "gamma" in known and "policy" not in known:
        querier.set_params(gamma=task.gamma)
    return querier.set_params(**method.stated)
