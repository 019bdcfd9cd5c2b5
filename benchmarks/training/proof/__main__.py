"""Kill a training as often as you like, and hold it to the one that nobody interrupted."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.training.proof.kill_schedule import (
    PROGRAM,
    SILENT_SECONDS,
    Schedule,
    ScheduleError,
    kills_in_saves,
)
from training.config.choices import Compile, Precision, Strategy

_BAD_ARGUMENTS = 2


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        schedule = Schedule.read(steps=options.steps, kill_at=options.kill_at, worlds=options.worlds)
        in_saves = kills_in_saves(
            options.kill_in_save, steps=options.steps, every=options.checkpoint_every, seed=options.seed
        )
        passed_on = _passed_on(options)
    except ScheduleError as error:
        print(f"error: {error}", file=sys.stderr)
        return _BAD_ARGUMENTS
    try:
        from benchmarks.training.proof.proving import Proof  # noqa: PLC0415  torch takes seconds, a wrong schedule none
    except ModuleNotFoundError as error:
        print(
            f"error: the proof needs {error.name}, a job does not: pip install {error.name}", file=sys.stderr
        )
        return _BAD_ARGUMENTS
    proof = Proof(
        schedule=schedule,
        seed=options.seed,
        checkpoint_every=options.checkpoint_every,
        program=options.program.resolve(),
        precisions=[options.precision] if options.precision else [Precision.FP32, Precision.BF16],
        options=passed_on,
        spoilings=options.spoil,
        in_saves=in_saves,
        silent_seconds=options.silent_seconds,
    )
    return proof.run(options.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.proof", description=__doc__)
    parser.add_argument("--steps", type=int, default=30, help="steps of each training (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and data (%(default)s)")
    parser.add_argument(
        "--kill-at",
        default="7:TERM,13:KILL,19:TERM",
        help="STEP:SIGNAL, comma between; TERM, KILL, INT, or SAVE: killed inside the save (%(default)s)",
    )
    parser.add_argument(
        "--worlds", default="2,2,1,4", help="ranks of each attempt, one more than kills (%(default)s)"
    )
    parser.add_argument(
        "--checkpoint-every", type=int, default=5, help="steps between checkpoints (%(default)s)"
    )
    parser.add_argument(
        "--program", type=Path, default=PROGRAM, help="the script that is started (training/train.py)"
    )
    parser.add_argument(
        "--json",
        type=Path,
        default=Path("build/training.json"),
        help="the report; the curves go beside it (%(default)s)",
    )
    _add_more_faults(parser)
    _add_passed_on(parser)
    return parser


def _add_more_faults(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kill-in-save", type=int, default=0, metavar="N", help="one more run, killed inside N saves"
    )
    parser.add_argument(
        "--spoil",
        type=int,
        default=0,
        metavar="N",
        help="spoil a checkpoint N times and read it; and one more run, each newest checkpoint spoiled",
    )
    parser.add_argument(
        "--silent-seconds",
        type=float,
        default=SILENT_SECONDS,
        help="an attempt that prints nothing for this long is given up (%(default)g)",
    )


def _add_passed_on(parser: argparse.ArgumentParser) -> None:
    program = parser.add_argument_group("passed on to the program")
    program.add_argument("--data", help="a directory of token shards; else the synthetic language")
    program.add_argument("--model", metavar="PRESET", help="the preset (tiny)")
    program.add_argument("--precision", type=Precision, choices=list(Precision), help="this one alone")
    program.add_argument("--strategy", type=Strategy, choices=list(Strategy))
    program.add_argument("--gradient-accumulation-steps", type=int, metavar="N")
    program.add_argument("--compile", type=Compile, choices=list(Compile))
    program.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="any other, as often as needed"
    )


def _passed_on(options: argparse.Namespace) -> dict[str, str]:
    """Raises ScheduleError for what is not NAME=VALUE."""
    named = {
        "data": options.data and (options.data if ":" in options.data else str(Path(options.data).resolve())),
        "preset": options.model,
        "strategy": options.strategy,
        "gradient_accumulation_steps": options.gradient_accumulation_steps,
        "compile": options.compile,
    }
    if wrong := [option for option in options.option if "=" not in option.strip("=")]:
        raise ScheduleError([f"--option has {option!r}; wanted is NAME=VALUE" for option in wrong])
    given = {name: str(value) for name, value in named.items() if value is not None}
    return given | dict(option.split("=", 1) for option in options.option)


if __name__ == "__main__":
    # As an exception, or what was started would go on alone.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main(sys.argv[1:]))
