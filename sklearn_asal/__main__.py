"""``python -m sklearn_asal``: demo, next, log, watch, report, train, evaluate, bench and more."""

import argparse
import copy
import json
import sys
import types

from ._arguments import check_figure, positive

_PROGRAM = "python -m sklearn_asal"
_OVERVIEW = f"""\
sklearn-asal picks the next experiment: the one that teaches your model most, and keeps its limits.
  {_PROGRAM} demo                 thirty safe queries, a table, a picture
  {_PROGRAM} next --help          the next experiments for a CSV or Excel file
  {_PROGRAM} bench run --help     compare methods; bench latency times queries on this machine
  {_PROGRAM} --help               all commands: watch, report, log, info, train, reproduce"""


def main(argv=None):
    """Run one sub-command; returns the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if not argv:
        print(_OVERVIEW)
        return 0
    parser = argparse.ArgumentParser(prog=_PROGRAM, description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_demo(commands)
    _add_next(commands)
    _add_train(commands, with_fields="train" in argv[:1])
    _add_evaluate(commands)
    _add_bench(commands)
    _add_reproduce(commands, with_fields="reproduce" in argv[:1])
    _add_export(commands)
    _add_info(commands)
    _add_log(commands)
    _add_pages(commands)
    arguments = parser.parse_args(argv)
    try:
        return arguments.run(arguments) or 0
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        print(f"{parser.prog} {arguments.command}: {_said(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        stopped = getattr(arguments, "stopped", "stopped")
        print(f"{parser.prog} {arguments.command}: {stopped}", file=sys.stderr)
        return 130


def _said(error):
    """An error in words, without the numbers of the operating system."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return error


# -- demo ----------------------------------------------------------------------------------


def _add_demo(commands):
    demo = commands.add_parser("demo", help="safe active learning on Townsend's function")
    demo.add_argument("--queries", type=positive, default=30, help="default: %(default)s")
    demo.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    demo.add_argument("--out", default="demo.png", help="figure to write; default: %(default)s")
    demo.add_argument("--data-home", help="folder with lgbb_original.txt, to run on it as well")
    demo.set_defaults(run=_demo)


def _demo(arguments):
    from .demo import demo

    check_figure(arguments.out, "--out")
    demo(arguments.queries, arguments.seed, arguments.out, arguments.data_home)


# -- next ----------------------------------------------------------------------------------


def _add_next(commands):
    from .spreadsheet.command import add_arguments

    add_arguments(commands.add_parser("next", help="the next experiments from a CSV or Excel file"))


# -- train ---------------------------------------------------------------------------------


def _add_train(commands, with_fields):
    train = commands.add_parser("train", help="train a policy on simulated functions")
    if with_fields:  # the presets need torch, which takes seconds to import
        from .trainer.command import add_arguments

        add_arguments(train)


# -- bench ---------------------------------------------------------------------------------


def _add_bench(commands):
    from .benchmarks.command import add_arguments

    add_arguments(commands.add_parser("bench", help="compare methods on twelve tasks"))


# -- reproduce -----------------------------------------------------------------------------


def _add_reproduce(commands, with_fields):
    reproduce = commands.add_parser("reproduce", help="other tables of the paper, as small grids")
    if with_fields:  # the experiments need torch, which takes seconds to import
        from .reproduce.command import add_arguments

        add_arguments(reproduce)


# -- evaluate, export and info -------------------------------------------------------------


def _add_evaluate(commands):
    evaluate = commands.add_parser("evaluate", help="measure a policy on fresh simulated tasks")
    evaluate.add_argument(
        "policy",
        help="a preset's name, for its shipped policy, or a file; any compares with a model of "
        "one lengthscale, with the true process, and with random points",
    )
    evaluate.add_argument(
        "--preset",
        help="preset to draw tasks from; default: the one named, or the one a file was trained on",
    )
    evaluate.add_argument("--objective", help="of the paper, such as S_H; default: the preset's")
    evaluate.add_argument(
        "--method",
        help="of bench run, such as safe-ensemble or safe-gp, in place of the bare policy",
    )
    evaluate.add_argument(
        "--queries",
        type=positive,
        help="largest number of a campaign; default: the preset's, for any 30",
    )
    evaluate.add_argument(
        "--tasks", type=positive, help="simulated campaigns; default: 2000, for any 100"
    )
    evaluate.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    evaluate.add_argument("--device", default="cpu")
    group = evaluate.add_argument_group("for any")
    group.add_argument("--features", type=positive, help="number of features; needed")
    group.add_argument(
        "--prior",
        choices=("broad", "paper"),
        help="of the lengthscales: a broad one of each feature's own, or the paper's; default: "
        "broad",
    )
    group.add_argument("--safe", action="store_true", help="campaigns with a limit")
    evaluate.set_defaults(run=_evaluate)


def _evaluate(arguments):
    from .policies.registry import infers, picks, resolve

    policy, safe = resolve(arguments.policy)
    if infers(policy):
        return _compare(arguments, policy, safe or arguments.safe)
    if picks(policy):
        raise ValueError(
            f"{arguments.policy} picks candidates, and has no objective of a preset. Evaluate it "
            "as a method in the place of a policy: `evaluate 2d --method aline`."
        )
    for name in ("features", "prior", "safe"):
        if getattr(arguments, name):
            raise ValueError(
                f"--{name} is for policy any, and not for {arguments.policy}; leave it out."
            )

    from .policies.registry import load_any
    from .trainer.evaluate import evaluate
    from .trainer.loop import usable_device
    from .trainer.presets import PRESETS, Preset

    network, header = load_any(arguments.policy)
    name = arguments.preset or arguments.policy
    if arguments.preset is not None and name not in PRESETS:
        raise ValueError(f"--preset must be one of {', '.join(PRESETS)}, got {name!r}")
    preset = PRESETS.get(name) or Preset.from_dict(header["preset"])
    if (preset.n_features, preset.safe) != (network.n_features, network.safe):
        raise ValueError(f"--preset {name} is not for the kind of policy in {arguments.policy}")
    if arguments.objective is not None:
        n_grid = preset.n_grid or 100
        preset = preset.replace(objective=arguments.objective, n_grid=n_grid)
    if arguments.queries is not None:
        preset = preset.replace(max_budget=arguments.queries)
    facts = {
        "policy": arguments.policy,
        "preset": preset.name,
        "tasks": arguments.tasks or 2000,
        "queries": preset.max_budget,
        "seed": arguments.seed,
        "scored_by": preset.objective,
    }
    if arguments.method is not None:
        network = _querying(arguments, preset)
        facts["method"] = arguments.method
    else:
        # A copy, for the loaded network is shared.
        network = copy.deepcopy(network).to(usable_device(arguments.device))
    result = evaluate(network, preset, facts["tasks"], arguments.seed, progress=True)
    print(json.dumps(facts | result))


def _compare(arguments, policy, safe):
    """Evaluate a policy for any number of features, beside other methods."""
    name = arguments.policy
    for flag in ("preset", "objective", "method"):
        if getattr(arguments, flag) is not None:
            raise ValueError(f"--{flag} has no meaning for {name}; leave it out.")
    if arguments.device != "cpu":
        raise ValueError(f"--device {arguments.device}: {name} runs on the CPU; leave it out.")
    if arguments.features is None:
        raise ValueError(f"--features is needed: {name} takes any number of features.")
    from tqdm import tqdm

    from .benchmarks.comparison import compare

    results = compare(
        arguments.features,
        safe=safe,
        prior=arguments.prior or "broad",
        n_tasks=arguments.tasks or 100,
        n_queries=arguments.queries or 30,
        seed=arguments.seed,
        policy=policy,
        progress=True,
    )
    for result in results:
        tqdm.write(json.dumps({"policy": name} | result))  # above the bar, if there is one
        sys.stdout.flush()


def _querying(arguments, preset):
    """The querier of a benchmark's method, to take the place of the policy."""
    from .benchmarks.methods import METHODS, make
    from .benchmarks.simulated import Querying
    from .policies.registry import locate_any

    fit = [name for name, method in METHODS.items() if method.safe == preset.safe]
    if arguments.method not in fit:
        raise ValueError(
            f"--method must be one of {', '.join(fit)} for preset {preset.name}, "
            f"got {arguments.method!r}"
        )
    # A preset is no task of the benchmark, but tells what a method asks of one.
    bounds = [(0.0, 1.0)] * preset.n_features
    task = types.SimpleNamespace(name=preset.name, gamma=preset.gamma, bounds=bounds)
    return Querying(make(arguments.method, task, locate_any(arguments.policy)))


def _add_export(commands):
    export = commands.add_parser("export", help="write a policy as an ONNX file")
    export.add_argument("policy", help="name, such as safe-2d, or policy file")
    export.add_argument("out", help="file to write, such as policy.onnx")
    export.set_defaults(run=_export)


def _export(arguments):
    from .policies.export import export_onnx

    export_onnx(arguments.policy, arguments.out)
    print(arguments.out)


def _add_log(commands):
    from .log.table import add_arguments

    add_arguments(commands.add_parser("log", help="print the log of a campaign as a table"))


def _add_pages(commands):
    from .pages.command import add_report_arguments, add_watch_arguments

    add_watch_arguments(commands.add_parser("watch", help="show a campaign in the browser"))
    add_report_arguments(commands.add_parser("report", help="write a campaign as an HTML file"))


def _add_info(commands):
    info = commands.add_parser("info", help="list the shipped policies, or describe one")
    info.add_argument("policy", nargs="?", help="name, such as safe-2d, or policy file")
    info.set_defaults(run=_info)


def _info(arguments):
    from . import __version__
    from .policies.checkpoint import read_header
    from .policies.registry import ANY, PFN, baselines, locate, locate_any, locate_pfn, shipped

    if arguments.policy is not None:
        is_pfn = arguments.policy == PFN
        path = locate_pfn(PFN) if is_pfn else locate_any(arguments.policy)
        header = read_header(path)
        if header["n_features"] is None:
            header |= {"n_features": "any", "safe": "with and without a limit", "max_budget": "any"}
            if header["architecture"]["kind"] == "pfn":
                header["n_features"] = f"1 to {header['architecture']['most_features']}"
        print(f"file: {path}", *_facts(header), sep="\n")
        return
    print(f"sklearn-asal {__version__}")
    if ANY in shipped(False):
        header = read_header(locate(ANY, safe=False))
        validation = header.get("validation", {}).get("objective", float("nan"))
        print(
            f"{ANY}: AmortizedQuerier({ANY!r}) and AmortizedSafeQuerier({ANY!r}), any number of "
            "features, initial points and queries, with and without a limit; "
            f"{header.get('steps_done')} steps, log density {validation:.3f} in its validation"
        )
    for safe in (True, False):
        for name, n_features in (shipped(safe) | ({} if safe else baselines())).items():
            if n_features is None:
                continue
            header = read_header(locate(name, safe=safe))
            querier = "AmortizedSafeQuerier" if safe else "AmortizedQuerier"
            validation = header.get("validation", {}).get("objective", float("nan"))
            objective = header.get("preset", {}).get("objective", "objective")
            print(
                f"{'safe-' * safe}{name}: {querier}({name!r}), {n_features} features, "
                f"{header.get('n_init')} initial points, up to {header['max_budget']} queries; "
                f"{header.get('steps_done')} steps, {objective} {validation:.3f} in its validation"
            )
    header = read_header(locate_pfn(PFN))
    print(
        f"{PFN}: no policy but the surrogate GPQuerier(surrogate={PFN!r}), up to "
        f"{header['architecture']['most_features']} features; {header['steps_done']} steps, log "
        f"density {header['validation']['objective']:.3f} in its validation"
    )


def _facts(header, indent=""):
    """A policy's header as lines of text."""
    for key, value in header.items():
        if isinstance(value, dict) and len(value) == 3 and "kind" in value:
            kind, *ends = value.values()  # a distribution, as the flags of train take it
            value = f"{kind}:{','.join(_fact(end, '/') for end in ends)}"
        elif key == "lags":  # likewise
            value = ",".join(_fact(lag, ":") for lag in value)
        if isinstance(value, dict):
            yield f"{indent}{key}:"
            yield from _facts(value, indent + "  ")
        else:
            yield f"{indent}{key}: {_fact(value, ', ')}"


def _fact(value, separator):
    if isinstance(value, list):
        return separator.join(_fact(part, separator) for part in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
