"""How long a query takes, and how that grows (labels tableS-deploy_complexities,
figure-result_al, figure-result_sal)."""

from ..benchmarks.methods import SUITES, label_of
from . import paper
from .cells import Campaigns, Queries
from .experiment import Experiment, Table, three_digits
from .training_time import exponent
from .variants import TASKS

_METHODS = *SUITES["al"], *SUITES["safe"]
_FEATURES = 2
# Observations, with the paper's pool of 5000; rows of a pool, with 20 observations.
_OBSERVATIONS, _POOL = (20, 60, 180), 5000
_POOLS, _FEW = (5000, 20_000, 80_000), 20
_CALLS = {"paper": 50, "small": 9, "quick": 1}
# Mixtures of Gaussian processes take seconds.
_SLOW_CALLS = {"paper": 10, "small": 1, "quick": 1}
_QUERIES = 20
_AL = "aal", "gp", "svgp", "mgp"
_FLUID = "asal", "asal-any", "safe-ensemble"
_FLUID_POOL = {"paper": None, "small": 100_000, "quick": 500}


def _query(scale, method, observations, pool):
    if scale.name == "quick":
        observations, pool = observations // 10, pool // 100
    calls = (_SLOW_CALLS if "mgp" in method else _CALLS)[scale.name]
    name = f"{method}-n{observations}-pool{pool}"
    return Queries(name, method, _FEATURES, observations, pool, calls)


def _twenty(scale, task, method):
    return Campaigns(
        f"{task}-{method}", task, method, scale.queries(_QUERIES), _seeds(scale), timed=True
    )


def _fluid(scale, method):
    size, queries = _FLUID_POOL[scale.name], scale.queries(_QUERIES)
    name = f"fluid-{method}"
    return Campaigns(name, "fluid", method, queries, 1, timed=True, pool_size=size)


def _seeds(scale):
    return scale.campaigns if scale.name == "paper" else 1


def _tasks():
    return [task for preset in ("1d", "2d", "5d") for task in TASKS[preset]]


def cells(scale):
    """Queries of each method and size; campaigns of twenty queries."""
    made = [_query(scale, method, n, _POOL) for method in _METHODS for n in _OBSERVATIONS]
    made += [_query(scale, method, _FEW, size) for method in _METHODS for size in _POOLS]
    made += [_twenty(scale, task, method) for method in _AL for task in _tasks()]
    made += [_fluid(scale, method) for method in _FLUID]
    # With as many observations and rows, the two kinds have cells in common.
    return list(dict.fromkeys(made))


def tables(scale, results):
    """Growth with observations, growth with the pool, twenty queries, the fluid system."""
    by_n = _growth(
        f"Milliseconds a query by the number of observations n, from a pool of {_POOL} rows",
        ("n", _OBSERVATIONS),
        lambda method, n: results.get(_query(scale, method, n, _POOL).name),
    )
    by_pool = _growth(
        f"Milliseconds a query by the rows N of the pool, after {_FEW} observations",
        ("N", _POOLS),
        lambda method, size: results.get(_query(scale, method, _FEW, size).name),
    )
    twenty = Table(
        f"Seconds of {_QUERIES} queries, the slowest of the tasks {', '.join(_tasks())}",
        "figure-result_al",
        ("method",),
        ("seconds",),
        scale="log",
    )
    for method in _AL:
        found = [results.get(_twenty(scale, task, method).name) for task in _tasks()]
        if None not in found:
            means = [sum(one["seconds"]) / len(one["seconds"]) for one in found]
            twenty.add(
                (label_of(method),), [three_digits(max(means))], [paper.twenty_queries(method)]
            )
    fluid = Table(
        "Seconds a query on the fluid system",
        "figure-result_sal",
        ("method",),
        ("seconds",),
        scale="log",
    )
    for method in _FLUID:
        cell = _fluid(scale, method)
        found = results.get(cell.name)
        if found is not None:
            each = found["seconds"][0] / cell.queries
            stated = paper.FLUID_QUERY if method == "asal" else None
            fluid.add((label_of(method),), [three_digits(each)], [stated])
    return [by_n, by_pool, twenty, fluid]


def _growth(title, across, result):
    """A table of times by the number of observations or of rows, as ``across`` says."""
    symbol, sizes = across
    table = Table(
        title,
        "tableS-deploy_complexities",
        ("method", "order, paper"),
        (*(f"{symbol} = {size}" for size in sizes), f"exponent of {symbol} at the end"),
        scale="log",
        along=sizes,
        across=symbol,
    )
    for method in _METHODS:
        found = [result(method, size) for size in sizes]
        if None in found:
            continue
        seconds = [one["seconds"] for one in found]
        order, stated = "", ()
        if (known := paper.complexity(method)) is not None:
            *exponents, order = known
            stated = [None] * len(sizes) + [exponents[symbol == "N"]]
        ours = [*(three_digits(1e3 * s) for s in seconds), exponent(seconds, sizes)]
        table.add((label_of(method), order), ours, stated)
    return table


DEPLOYMENT_TIME = Experiment(
    "deployment-time",
    "Time of a query",
    ("tableS-deploy_complexities", "figure-result_al", "figure-result_sal"),
    "Each query is the first of a campaign that has been told all its observations, with two "
    "inputs, on one thread: nothing is kept from queries before it, but the index of the pool. "
    "Models are fitted in it. Campaigns of twenty queries follow, where much is kept. At scale "
    "small the pool of the fluid system has 100,000 trajectories; the paper's has a million.",
    cells,
    tables,
    "For 20 queries AAL takes less than 0.3 s, a Gaussian process less than 50 s, a sparse one "
    "less than 120 s, a mixture 16 minutes. On the fluid system ASAL takes less than 0.1 s a "
    "query.",
)
