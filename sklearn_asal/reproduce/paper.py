"""The paper's figures, by the labels of its tables."""

from .experiment import Number

# Label tableS-trained_varied_policy_size: -loss, that is I, and GP test RMSE, by embedding.
_SIZES = {
    "1d": {128: (0.6844, 0.137), 64: (0.6841, 0.141), 32: (0.6835, 0.141)},
    "2d": {128: (1.3582, 0.177), 64: (1.3292, 0.201), 32: (1.2761, 0.245)},
    "5d": {128: (0.4216, 0.834), 64: (0.4044, 0.845), 32: (0.3870, 0.850)},
}

# Label tableS-result_al_varied_policy_size: RMSE of smaller embeddings (128 is in the main table).
_SIZES_RMSE = {
    "sinus": {64: (0.13, 0.005), 32: (0.12, 0.005)},
    "airline": {64: (0.46, 0.027), 32: (0.42, 0.023)},
    "branin": {64: (0.19, 0.013), 32: (0.35, 0.032)},
    "lgbb": {64: (0.22, 0.016), 32: (0.20, 0.014)},
    "airfoil": {64: (0.70, 0.017), 32: (0.70, 0.031)},
}

# Labels table-result_al and tableS-result_al_varied_T: RMSE of DAD, by number of queries.
_DAD_RMSE = {
    ("sinus", 20): (0.49, 0.065),
    ("airline", 20): (0.43, 0.018),
    ("branin", 30): (0.99, 0.128),
    ("lgbb", 30): (0.48, 0.063),
    ("sinus", 10): (0.84, 0.119),
    ("airline", 10): (0.45, 0.014),
    ("branin", 20): (0.81, 0.040),
    ("lgbb", 20): (0.32, 0.012),
}

# Label tableS-training_time: hours on one RTX 3080; DAD by its number of queries.
_HOURS = {
    "1d": 1.0,
    "2d": 1.0,
    "5d": 2.0,
    "safe-2d": 2.5,
    "safe-3d": 4.0,
    "safe-7d-fluid": 12.0,
    ("dad-1d", 10): 2.0,
    ("dad-1d", 20): 2.5,
    ("dad-2d", 10): 2.0,
    ("dad-2d", 20): 2.5,
    ("dad-2d", 30): 3.5,
    ("dad-5d", 10): 3.0,
    ("dad-5d", 20): 4.0,
    ("dad-5d", 30): 6.0,
    ("dad-5d", 40): 9.0,
}

# Label tableS-trained_run_thresholds: deployments until the training has paid off.
_THRESHOLDS = {
    ("1d", "gp"): (17, 18),
    ("2d", "gp"): (10, 12),
    ("5d", "gp"): (17, 17),
    ("safe-2d", "safe-gp"): (12, 15),
    ("safe-3d", "safe-gp"): (10, 10),
    ("safe-7d-fluid", "safe-gp"): (9, 9),
    ("1d", "mgp"): (1, 1),
    ("2d", "mgp"): (1, 1),
    ("5d", "mgp"): (1, 1),
    ("safe-2d", "safe-mgp"): (1, 1),
    ("safe-3d", "safe-mgp"): (1, 1),
    ("safe-7d-fluid", "safe-mgp"): (1, 1),
}

# Text of section "Amortized Unconstrained AL" on figure-result_al: seconds of 20 queries.
_TWENTY_QUERIES = {
    "aal": (0.3, "< 0.3"),
    "gp": (50.0, "< 50"),
    "svgp": (120.0, "< 120"),
    "mgp": (960.0, "960"),
}

# Label tableS-deploy_complexities: exponents of the number of observations n and of the pool in
# the larger term, and that term.
_COMPLEXITIES = {
    "aal": (2, 0, "n²"),
    "asal": (2, 0, "n²"),
    "gp": (3, 1, "n³ + N n²"),
    "safe-gp": (3, 1, "n³ + N n²"),
    "safe-random": (3, 1, "n³ + N n²"),
    "svgp": (1, 1, "n + N"),
    "safe-svgp": (1, 1, "n + N"),
    "mgp": (3, 1, "n³ + N n²"),
    "safe-mgp": (3, 1, "n³ + N n²"),
}

#: Share of safe queries of ASAL with gamma = 0.05, from the text of section "Amortized Safe AL".
SAFE_SHARE = Number(0.95, text="> 0.95")

#: Its seconds a query on the fluid system, from the same section.
FLUID_QUERY = Number(0.1, text="< 0.1")

#: Tables and figures that no experiment here is about, and where their like is.
ELSEWHERE = {
    "table-result_al": "bench run --suite al; DAD: reproduce dad",
    "figure-result_al": "bench run --suite al and its report; times: reproduce deployment-time",
    "figure-result_sal": "bench run --suite safe and its report; times: reproduce deployment-time",
    "tableS-batch_sizes": "settings: train PRESET, and --scale paper here",
    "tableS-training_samplers": "settings: the priors of the presets",
    "tableS-benchmark_dimension": "a survey of other papers",
    "figureS-nn": "a drawing of the network: kind=transformer",
    "figureS-acq_safeprob": "a drawing of formulas",
    "figureS-safe_acq": "a drawing of formulas",
    "figureS-q_examples": "a drawing of simulated safety functions",
    "figure1": "a drawing of the idea",
}


def size(preset, embedding):
    """Objective I and GP test RMSE of a policy (label tableS-trained_varied_policy_size).

    Parameters
    ----------
    preset : {"1d", "2d", "5d"}
    embedding : {128, 64, 32}

    Returns
    -------
    (Number, Number)
    """
    objective, rmse = _SIZES[preset][embedding]
    return Number(objective), Number(rmse)


def size_rmse(task, embedding):
    """RMSE of a policy with a smaller embedding (label tableS-result_al_varied_policy_size).

    Parameters
    ----------
    task : str
    embedding : {64, 32}

    Returns
    -------
    Number
    """
    return Number(*_SIZES_RMSE[task][embedding])


def dad_rmse(task, queries):
    """RMSE of DAD (labels table-result_al, tableS-result_al_varied_T).

    Parameters
    ----------
    task : str
    queries : int

    Returns
    -------
    Number or None
    """
    found = _DAD_RMSE.get((task, queries))
    return None if found is None else Number(*found)


def hours(preset, queries=None):
    """Hours of a training (label tableS-training_time).

    Parameters
    ----------
    preset : str
    queries : int, optional
        Of DAD.

    Returns
    -------
    Number or None
    """
    found = _HOURS.get(preset, _HOURS.get((preset, queries)))
    return None if found is None else Number(found, text=f"about {found:g}")


def threshold(preset, method):
    """Deployments until a training has paid off (label tableS-trained_run_thresholds).

    Parameters
    ----------
    preset, method : str

    Returns
    -------
    Number or None
    """
    if (preset, method) not in _THRESHOLDS:
        return None
    low, high = _THRESHOLDS[preset, method]
    text = f"{low}" if low == high else f"{low} to {high}"
    return Number((low + high) / 2, text=text)


def twenty_queries(method):
    """Seconds of 20 queries, mostly an upper end (label figure-result_al).

    Parameters
    ----------
    method : str

    Returns
    -------
    Number or None
    """
    found = _TWENTY_QUERIES.get(method)
    return None if found is None else Number(found[0], text=found[1])


def complexity(method):
    """How the time of a query grows (label tableS-deploy_complexities).

    Parameters
    ----------
    method : str

    Returns
    -------
    (Number, Number, str) or None
        Exponents of the number of observations and of the size of the pool; the term.
    """
    found = _COMPLEXITIES.get(method)
    if found is None:
        return None
    n, pool, term = found
    return Number(n, text=str(n)), Number(pool, text=str(pool)), term
