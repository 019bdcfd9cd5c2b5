"""Kill a training as often as you like, and hold it to the one that nobody interrupted."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from training.proof.attempts import PROGRAM
from training.proof.schedule import Schedule, ScheduleError

_BAD_ARGUMENTS = 2


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        schedule = Schedule.read(steps=options.steps, kill_at=options.kill_at, worlds=options.worlds)
    except ScheduleError as error:
        print(f"error: {error}", file=sys.stderr)
        return _BAD_ARGUMENTS
    try:
        from training.proof.proving import Proof  # noqa: PLC0415  torch takes seconds, a wrong schedule none
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
    )
    return proof.run(options.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.proof", description=__doc__)
    parser.add_argument("--steps", type=int, default=30, help="steps of each training (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and data (%(default)s)")
    parser.add_argument(
        "--kill-at",
        default="7:TERM,13:KILL,19:TERM",
        help="STEP:SIGNAL, comma between; TERM, KILL or INT (%(default)s)",
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
    return parser


if __name__ == "__main__":
    # As an exception, or what was started would go on alone.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main(sys.argv[1:]))
