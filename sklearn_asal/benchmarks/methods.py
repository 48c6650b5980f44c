"""The methods that are compared, by name (label appendix-experiment_details-gp_modeling).

The Gaussian process methods use this package's surrogates as they come, with weak priors on the
hyperparameters, where the paper has pure maximum likelihood: little changes without a limit,
and with one, queries are safe more often.
"""

from dataclasses import dataclass, field

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
        The extra that it needs, such as "botorch". Such methods are part of no suite.
    """

    querier: str
    params: dict = field(default_factory=dict)
    safe: bool = False
    label: str = ""
    extra: str = ""


#: What each name stands for.
METHODS = {
    "asal": Method("AmortizedSafeQuerier", {}, True, "ASAL"),
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
    "random": Method("RandomQuerier", {}, False, "Random"),
    "botorch": Method("BoTorchQuerier", {}, False, "BoTorch, qNIPV", "botorch"),
    "skactiveml-greedy": Method("greedy_sampling", {}, False, "scikit-activeml, GSi", "skactiveml"),
    "skactiveml-committee": Method(
        "query_by_committee", {}, False, "scikit-activeml, QBC", "skactiveml"
    ),
    "modal-std": Method("ModalQuerier", {}, False, "modAL, max std", "modal"),
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
        if method.safe == (suite == "safe") and not method.extra
    )
    for suite in ("al", "safe")
}


def make(name, task, policy=None):
    """Build the querier that a method's name stands for.

    Parameters
    ----------
    name : str
        One of ``METHODS``.
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
    KeyError
        If ``METHODS`` has no such name.
    ImportError
        The method is another package's, which is not installed.
    """
    import sklearn_asal

    from ..policies.registry import find
    from ..surrogates import EnsembleGP, SparseGP

    method = METHODS[name]
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
    if known.get("policy") == "auto":
        querier.set_params(policy=policy or special or f"{n_features}d")
        if method.safe:
            querier.set_params(gamma=task.gamma)
    elif "gamma" in known and "policy" not in known:
        querier.set_params(gamma=task.gamma)
    return querier
