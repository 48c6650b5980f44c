"""``python -m sklearn_asal train``: train, resume, plot."""

import argparse
import dataclasses
import typing

from .._arguments import positive, positive_number
from .distributed import joined
from .loop import Trainer, read_state
from .presets import OF_SAFETY, PRESETS, Preset
from .priors import DISTRIBUTIONS, parse_distribution


def add_arguments(train):
    """Add the arguments of ``train`` to its parser.

    Parameters
    ----------
    train : argparse.ArgumentParser
    """
    train.set_defaults(run=_train, parser=train)
    train.add_argument(
        "preset", nargs="?", choices=sorted(PRESETS), metavar="PRESET", help=", ".join(PRESETS)
    )
    train.add_argument("--out", help="folder of the run")
    train.add_argument("--plot", metavar="RUN", help="draw the curves of a run, and nothing else")
    train.add_argument("--resume", action="store_true", help="go on with the run in --out")
    train.add_argument("--start-from", help="policy file whose weights to begin with")
    train.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    train.add_argument("--threads", type=positive, help="CPU threads; default: one for each core")
    train.add_argument("--minutes", type=positive_number, help="stop then; can be resumed")
    train.add_argument("--tensorboard", action="store_true", help="log to OUT/tensorboard, too")
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
    preset = Preset.from_dict(read_state(arguments.out)["preset"])
    if arguments.preset not in (None, preset.name):
        raise ValueError(
            f"{arguments.out} holds a run of {preset.name}, not of {arguments.preset}; leave the "
            "preset out to go on with it, or choose another folder."
        )
    return preset


def _train(arguments):
    if arguments.plot is not None:
        from .plot import plot_run

        print(plot_run(arguments.plot))
        return 0
    if arguments.out is None or (arguments.preset is None and not arguments.resume):
        arguments.parser.error("PRESET and --out are needed, or --plot RUN")
    names = [field.name for field in dataclasses.fields(Preset) if field.name != "name"]
    changes = {n: getattr(arguments, n) for n in names if getattr(arguments, n) is not None}
    # The flags of a run need not be said again; what is said has to agree with it.
    preset = _of_run(arguments) if arguments.resume else PRESETS[arguments.preset]
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
