"""``python -m sklearn_asal train``: train, resume, plot."""

import argparse
import dataclasses
import math
import os
import typing

from .._arguments import positive, positive_number
from ..policies.registry import ANY, PFN
from .aline import COLUMNS, RECIPES, ALINETrainer, Recipe
from .distributed import joined
from .inference import InferenceTrainer
from .loop import Trainer, read_state
from .pfn import PFNTrainer
from .presets import OF_SAFETY, PRESETS, Preset
from .priors import DISTRIBUTIONS, parse_distribution

# What has no preset, and the fields of one that it has, too.
_SUPERVISED = {ANY: InferenceTrainer, PFN: PFNTrainer}
_OF_SUPERVISED = "steps", "seed"
# Those that ALINE has, by their flags.
_OF_ALINE = (
    "n-features",
    "max-budget",
    "n-functions",
    "steps",
    "seed",
    "lr",
    "embedding",
    "hidden",
    "heads",
    "layers",
)
# Data sets of ``any`` come in files, of which some are held out for validation.
_FEWEST_FILES = 9


def add_arguments(train):
    """Add the arguments of ``train`` to its parser.

    Parameters
    ----------
    train : argparse.ArgumentParser
    """
    train.set_defaults(run=_train, parser=train)
    train.add_argument(
        "preset",
        nargs="?",
        choices=sorted([*PRESETS, *_SUPERVISED, *RECIPES]),
        metavar="PRESET",
        help=f"{', '.join(PRESETS)}, or {ANY}: one policy for all numbers of features, or {PFN}: "
        f"the network of GPQuerier(surrogate='pfn'). Of the fields below, {ANY} and {PFN} take "
        "--steps (default: 30000 and 15000) and --seed (default: 0). For comparison also "
        f"{' and '.join(RECIPES)}, which take --{', --'.join(_OF_ALINE)}.",
    )
    train.add_argument("--out", help="folder of the run")
    train.add_argument("--plot", metavar="RUN", help="draw the curves of a run, and nothing else")
    train.add_argument("--resume", action="store_true", help="go on with the run in --out")
    train.add_argument("--start-from", help="policy file whose weights to begin with")
    train.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    train.add_argument("--threads", type=positive, help="CPU threads; default: one for each core")
    train.add_argument("--minutes", type=positive_number, help="stop then; can be resumed")
    train.add_argument("--tensorboard", action="store_true", help="log to OUT/tensorboard, too")
    train.add_argument(
        "--systems",
        type=positive,
        metavar="FILES",
        help=f"of {ANY} only: simulated data sets to learn from, in files of 2,560; default: 800, "
        f"at least {_FEWEST_FILES}",
    )
    train.add_argument("--batch", type=positive, help="tasks a step; sets --n-kernels")
    train.add_argument("--save-every", type=float, default=120, help="seconds; default %(default)s")
    train.add_argument("--validate-every", type=positive, help="steps; default: 50")
    train.add_argument("--validation-tasks", type=positive, help="default: 256")
    group = train.add_argument_group("fields of the preset, by default the preset's")
    for field in dataclasses.fields(Preset):
        if field.name != "name":
            _add_field(group, field)


def _add_field(group, field):
    flag = "--" + field.name.replace("_", "-")
    kinds = typing.get_args(field.type) or (field.type,)
    if field.type is bool:
        options = {"action": argparse.BooleanOptionalAction, "default": None}
    elif set(kinds) & set(DISTRIBUTIONS.values()):
        options = {"type": _distribution(parse_distribution), "metavar": "DISTRIBUTION"}
    elif field.name == "lags":
        options = {"type": _lags, "metavar": "LATER:EARLIER:STEP,..."}
    else:
        options = {"type": field.type, "metavar": field.type.__name__.upper()}
    group.add_argument(flag, help=field.metadata["help"].replace("%", "%%"), **options)


def _distribution(parse):
    def distribution(text):
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return distribution


def _lags(text):
    try:
        return tuple(
            (int(later), int(earlier), float(step))
            for later, earlier, step in (part.split(":") for part in text.split(",") if part)
        )
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"lags are written LATER:EARLIER:STEP,... such as 1:0:0.3,2:1:0.3; got {text!r}"
        ) from error


def _of_run(arguments):
    """Name and preset, or recipe, of the run in --out; of other runs the settings, a dict."""
    state = read_state(arguments.out)
    if "recipe" in state:
        preset = Recipe(**state["recipe"])
    elif "settings" in state:
        preset = state["settings"]
    else:
        preset = Preset.from_dict(state["preset"])
    # Runs of earlier versions that have settings are of ``any``.
    name = state.get("name", ANY) if isinstance(preset, dict) else preset.name
    if arguments.preset not in (None, name):
        raise ValueError(
            f"{arguments.out} holds a run of {name}, not of {arguments.preset}; leave the "
            "preset out to go on with it, or choose another folder."
        )
    return name, preset


def _train(arguments):
    if arguments.plot is not None:
        from .plot import plot_run, read_log

        known = read_log(arguments.plot)
        if "validation" in known:
            *columns, last = (name for name in COLUMNS if name in known)
            name = "ALINE" if "policy" in known else read_state(arguments.plot).get("name", ANY)
            raise ValueError(
                f"{arguments.plot} holds a run of {name}, which --plot does not draw; its log.csv "
                f"has a row for each validation: {', '.join(columns)} and {last}."
            )
        print(plot_run(arguments.plot))
        return 0
    if arguments.out is None or (arguments.preset is None and not arguments.resume):
        arguments.parser.error("PRESET and --out are needed, or --plot RUN")
    names = [field.name for field in dataclasses.fields(Preset) if field.name != "name"]
    changes = {n: getattr(arguments, n) for n in names if getattr(arguments, n) is not None}
    # The flags of a run need not be said again; what is said has to agree with it.
    name, preset = arguments.preset, (PRESETS | RECIPES).get(arguments.preset, {})
    if arguments.resume:
        name, preset = _of_run(arguments)
    if isinstance(preset, Recipe):
        return _train_aline(arguments, changes, preset)
    if isinstance(preset, dict):
        return _train_supervised(name, arguments, changes, preset)
    if arguments.systems is not None:
        raise ValueError(f"--systems is for {ANY}, and not for {preset.name}; leave it out.")
    preset = preset.replace(**changes)
    # The presets' own number may be larger: it makes every step of a short run direct.
    if arguments.direct_steps is not None and arguments.direct_steps > preset.steps:
        raise ValueError(
            f"--direct-steps {arguments.direct_steps} is larger than --steps {preset.steps}; pass "
            f"at most {preset.steps}, with which every step is direct."
        )
    if not preset.safe:
        for name in OF_SAFETY:
            if name in changes:
                raise ValueError(
                    f"--{name.replace('_', '-')} is for safe policies, and {preset.name} has no "
                    "safety signal; leave it out."
                )
    if arguments.batch is not None:
        preset = preset.with_batch(arguments.batch)
    with joined(arguments.device) as device:
        trainer = Trainer(
            preset,
            arguments.out,
            start_from=arguments.start_from,
            device=device,
            threads=arguments.threads,
            save_every=arguments.save_every,
            validate_every=arguments.validate_every,
            validation_tasks=arguments.validation_tasks,
            max_seconds=arguments.minutes and 60 * arguments.minutes,
            tensorboard=arguments.tensorboard,
        )
        best = trainer.run(resume=arguments.resume)
    status = 130 if trainer.interrupted else 0  # as a shell has it
    if trainer.rank > 0:
        return status
    if trainer.policy_path.exists():
        print(f"best validation objective {best:.4f}: {trainer.policy_path}")
    else:
        print(
            "No policy yet: there was no validation. Go on with --resume, or validate more often "
            "with --validate-every."
        )
    return status


def _train_supervised(name, arguments, changes, known):
    """Train what has no preset; ``known`` are the settings of the run that goes on."""
    _refuse_foreign(name, arguments, changes, more=("systems",) * (name != ANY))
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(f"{name} is trained by one process; start it without torchrun.")
    flags = {"steps": arguments.steps, "files": arguments.systems, "seed": arguments.seed}
    asked = {flag: value for flag, value in flags.items() if value is not None}
    _check_settings(asked, arguments.save_every)
    shown = {"files": "systems"}
    different = [
        f"{shown.get(flag, flag)} (run: {known[flag]}, asked: {value})"
        for flag, value in asked.items()
        if known.get(flag, value) != value
    ]
    if different:
        raise ValueError(
            f"{arguments.out} holds a run with other settings; different: {', '.join(different)}. "
            "Leave these out to go on with it, or choose another folder."
        )
    trainer = _SUPERVISED[name](
        arguments.out,
        **known | asked,
        threads=arguments.threads,
        save_every=arguments.save_every,
        max_seconds=arguments.minutes and 60 * arguments.minutes,
    )
    best = trainer.run(resume=arguments.resume)
    if trainer.step < trainer.steps:
        print(f"Stopped at step {trainer.step} of {trainer.steps}; go on with --resume.")
    if math.isfinite(best):
        print(f"best validation objective {best:.4f}: {trainer.policy_path}")
    else:
        print("No policy yet: there was no validation. Go on with --resume.")
    return 130 if trainer.interrupted else 0


def _train_aline(arguments, changes, recipe):
    """Train ALINE by a recipe, or go on with a run of it."""
    fields = [flag.replace("-", "_") for flag in _OF_ALINE]
    _refuse_foreign(recipe.name, arguments, changes, fields, ("systems", "threads"))
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(f"{recipe.name} is trained by one process; start it without torchrun.")
    _check_settings({}, arguments.save_every)
    trainer = ALINETrainer(
        recipe.replace(**changes),
        arguments.out,
        save_every=arguments.save_every,
        max_seconds=arguments.minutes and 60 * arguments.minutes,
    )
    best = trainer.run(resume=arguments.resume)
    if trainer.step < trainer.recipe.steps:
        print(f"Stopped at step {trainer.step} of {trainer.recipe.steps}; go on with --resume.")
    if math.isfinite(best):
        print(f"best validation objective {best:.4f}: {trainer.policy_path}")
    else:
        print("No policy yet: there was no validation of campaigns. Go on with --resume.")
    return 130 if trainer.interrupted else 0


def _refuse_foreign(name, arguments, changes, fields=_OF_SUPERVISED, more=()):
    """Raise if a flag is given that has no meaning for what is trained."""
    given = [
        f"--{'no-' * (value is False)}{field.replace('_', '-')}"
        for field, value in changes.items()
        if field not in fields
    ]
    others = "batch", "start_from", "tensorboard", "validate_every", "validation_tasks", *more
    given += [f"--{flag.replace('_', '-')}" for flag in others if getattr(arguments, flag)]
    if arguments.device != "cpu":
        given.append(f"--device {arguments.device}")
    if given:
        raise ValueError(
            f"{given[0]} has no meaning for {name}, which is trained on the CPU and has no preset; "
            "leave it out."
        )


def _check_settings(asked, save_every):
    if asked.get("steps", 1) < 1:
        raise ValueError(f"--steps must be at least 1, got {asked['steps']}")
    if asked.get("files", _FEWEST_FILES) < _FEWEST_FILES:
        raise ValueError(
            f"--systems must be at least {_FEWEST_FILES}, for {_FEWEST_FILES - 1} files are held "
            f"out for validation; got {asked['files']}"
        )
    if not 0 <= asked.get("seed", 0) < 2**63:
        raise ValueError(f"--seed must be from 0 to 2**63 - 1, got {asked['seed']}")
    if not save_every >= 0:
        raise ValueError(f"--save-every must be at least 0 seconds, got {save_every}")
