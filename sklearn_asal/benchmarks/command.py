"""``python -m sklearn_asal bench``: run, report, latency."""

import argparse

import numpy as np

from .._arguments import check_figure, not_negative, positive, positive_number


def add_arguments(bench):
    """Add the sub-commands of ``bench`` to its parser.

    Parameters
    ----------
    bench : argparse.ArgumentParser
    """
    from .methods import METHODS, SUITES
    from .tasks import TASKS

    commands = bench.add_subparsers(dest="bench_command", required=True)
    run = commands.add_parser("run", help="run methods on tasks and keep the results")
    run.add_argument("--out", required=True, help="folder of the results; goes on where it stopped")
    run.add_argument("--suite", choices=sorted(SUITES), help="default: both")
    run.add_argument(
        "--tasks",
        nargs="+",
        type=_task_name,
        metavar="TASK",
        help=", ".join(TASKS) + ", or MODULE:NAME for one of your own",
    )
    run.add_argument(
        "--methods",
        nargs="+",
        type=_method_name,
        metavar="METHOD",
        help=", ".join(METHODS) + ", also with parameters, such as asal:guard=True,z_scale=2.0",
    )
    run.add_argument("--seeds", type=positive, help="default: 5, or 1 with --quick")
    run.add_argument("--jobs", type=positive, default=1, help="processes; default: %(default)s")
    run.add_argument(
        "--backend", choices=("loky", "dask", "ray"), default="loky", help="default: %(default)s"
    )
    run.add_argument(
        "--queries", type=positive, dest="n_queries", help="default: each task's own number"
    )
    run.add_argument("--every", type=positive, help="queries between two RMSEs; default: 1")
    run.add_argument("--policy", help="name or file, for asal and aal; default: the shipped ones")
    run.add_argument("--pool-size", type=positive, help="of the task fluid; default: 1000000")
    run.add_argument("--data-home", help="folder of the data files")
    run.add_argument(
        "--quick", action="store_true", help="one seed, two queries: to see that all of it works"
    )
    stopped = "stopped; finished cells are kept, and the same command goes on with the others"
    run.set_defaults(run=_run, stopped=stopped)
    report = commands.add_parser("report", help="tables and figures of a folder of results")
    report.add_argument("folder", help="what bench run --out wrote")
    report.set_defaults(run=_report)
    latency = commands.add_parser("latency", help="time queries on this machine")
    latency.add_argument(
        "--policy", default="safe-2d", help="name or file, such as safe-any; default: %(default)s"
    )
    latency.add_argument("--features", type=positive, help="of policy any; default: 4")
    latency.add_argument(
        "--guard",
        action=argparse.BooleanOptionalAction,
        help="of safe policies; default: on for policies by name",
    )
    latency.add_argument("--calls", type=positive, help="default: 1000")
    latency.add_argument(
        "--lengths", type=positive, nargs="+", help="observations; default: 5 25 45"
    )
    latency.add_argument(
        "--deadline-ms", type=positive_number, help="count calls over it; default: 1.0"
    )
    latency.add_argument("--out", help="figure of every call, for instance latency.png")
    instead = latency.add_mutually_exclusive_group()
    instead.add_argument(
        "--soak", type=positive, metavar="CALLS", help="instead, query at 1 kHz so many times"
    )
    latency.add_argument(
        "--load", type=not_negative, metavar="THREADS", help="busy beside --soak; default: 0"
    )
    instead.add_argument(
        "--many", type=positive, metavar="CAMPAIGNS", help="instead, proposals a second in a batch"
    )
    instead.add_argument(
        "--pool", type=positive, metavar="ROWS", help="instead, a campaign on a random pool"
    )
    latency.set_defaults(run=_latency)


def _task_name(text):
    from .tasks import TASKS

    if text not in TASKS and ":" not in text:
        raise argparse.ArgumentTypeError(
            f"must be out of {', '.join(TASKS)}, or MODULE:NAME for a task of your own; got {text}"
        )
    return text


def _method_name(text):
    from .methods import method_of

    try:
        return method_of(text).name
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _run(arguments):
    from ..policies.registry import locate_any
    from .methods import SUITES
    from .runner import QUICK, run_cells
    from .summary import markdown, short, summarise
    from .tasks import TASKS, get_task, suite_of

    suites = [arguments.suite] if arguments.suite else list(SUITES)
    tasks = arguments.tasks or [name for name, suite in TASKS.items() if suite in suites]
    tasks = [get_task(name) if ":" in name else name for name in tasks]
    strangers = [getattr(task, "name", task) for task in tasks if suite_of(task) not in suites]
    if strangers:
        raise ValueError(f"--tasks: {', '.join(strangers)} is not of the suite {suites[0]!r}.")
    options = dict(QUICK) if arguments.quick else {}
    for name in ("seeds", "n_queries", "every", "pool_size"):
        if getattr(arguments, name) is not None:
            options[name] = getattr(arguments, name)
    policy = None if arguments.policy is None else locate_any(arguments.policy)
    # By default each task gets the methods of its own suite.
    plan = (
        [(tasks, arguments.methods)]
        if arguments.methods
        else [([task for task in tasks if suite_of(task) == s], SUITES[s]) for s in suites]
    )
    failed = {}
    for chosen, methods in plan:
        if chosen:
            results = run_cells(
                arguments.out,
                chosen,
                methods,
                jobs=arguments.jobs,
                backend=arguments.backend,
                policy=policy,
                data_home=arguments.data_home,
                **options,
            )
            failed.update({cell: results.failures[cell] for cell in results.failed})
    print(markdown(*short(summarise(results))))
    if failed:
        path = results.folder / "failures.csv"
        print(f"\n{len(failed)} of this run's cells failed ({path}), tried again at the next run:")
        for error in dict.fromkeys(failed.values()):
            cells = sorted(cell for cell, why in failed.items() if why == error)
            tasks, methods, seeds = (
                ", ".join(dict.fromkeys(map(str, part))) for part in zip(*cells, strict=True)
            )
            print(f"- {methods} on {tasks}, seed {seeds}: {error}")
    print(f"\n{results.folder / 'results.csv'}")
    return 1 if failed else 0


def _report(arguments):
    from .report import report

    print(report(arguments.folder))


# What each option of latency goes with; None is the table of calls.
_OF_MODE = {
    "calls": (None,),
    "lengths": (None,),
    "out": (None,),
    "deadline_ms": (None, "soak"),
    "load": ("soak",),
}


def _check_latency(arguments):
    """Raise where an option would have no effect, or the figure no file."""
    mode = next((name for name in ("soak", "many", "pool") if getattr(arguments, name)), None)
    for name, modes in _OF_MODE.items():
        if getattr(arguments, name) is not None and mode not in modes:
            flag, (first, *_) = f"--{name.replace('_', '-')}", modes
            remedy = f"add --{first}" if mode is None else f"leave it or --{mode} out"
            raise ValueError(f"{flag} would have no effect: {remedy}.")
    if arguments.out is not None:
        check_figure(arguments.out, "--out")


def _latency(arguments):
    from ..policies.registry import ANY, load_runtime, resolve
    from . import latency

    _check_latency(arguments)
    policy, safe = resolve(arguments.policy)
    n_features = load_runtime(policy, safe=safe)[0].n_features
    if n_features is None:
        n_features = arguments.features or 4
    elif arguments.features is not None:
        raise ValueError(f"--features is for {ANY!r}; {arguments.policy} has {n_features}.")
    if arguments.guard is not None and not safe:
        raise ValueError(f"--guard would have no effect: {arguments.policy} knows no limit.")
    guard = {"guard": arguments.guard}
    deadline = arguments.deadline_ms or 1.0
    if arguments.soak:
        load = arguments.load or 0
        seconds, late, growth = latency.soak(
            policy, safe, n_features, arguments.soak, load, **guard
        )
        ms = 1e3 * seconds
        print(
            f"{len(ms)} queries at 1 kHz, {load} threads of load: "
            f"p50 {np.median(ms):.3f} ms, p99 {np.percentile(ms, 99):.3f} ms, "
            f"p99.9 {np.percentile(ms, 99.9):.3f} ms, worst {ms.max():.3f} ms; "
            f"{np.mean(ms > deadline):.3%} over {deadline:g} ms; query and tell over the period in "
            f"{late / len(ms):.3%}; memory {growth:+.1f} MiB after the first tenth"
        )
        return
    if arguments.many:
        rate = latency.throughput(policy, safe, n_features, arguments.many, **guard)
        print(f"propose_many: {rate:.0f} proposals/s at 25 observations")
        return
    if arguments.pool:
        if arguments.pool < 200:
            raise ValueError(f"--pool must be at least 200, got {arguments.pool}.")
        index, *seconds = latency.pool_latency(policy, safe, arguments.pool, n_features, **guard)
        print(f"pool of {arguments.pool} x {n_features}: indexed in {index:.2f} s", end="")
        for name, part in zip(("nearest row left", "query()", "tell()"), seconds, strict=True):
            p50, p99 = np.percentile(1e3 * part, (50, 99))
            print(f"; {name} p50 {p50:.3f} ms, p99 {p99:.3f} ms", end="")
        print()
        return
    results, every = {}, arguments.calls or 1000
    for name, prepare in latency.methods(policy, safe, n_features, **guard).items():
        # A Gaussian process takes its time.
        calls = max(every // 50, 5) if name.startswith("GP") else every
        for n in arguments.lengths or latency.LENGTHS:
            results[name, n] = latency.latencies(prepare, n, n_features, calls)
    print("\n".join(latency.table(results, deadline)))
    if arguments.out:
        latency.plot(results, deadline, arguments.out)
        print(f"\n{arguments.out}")
