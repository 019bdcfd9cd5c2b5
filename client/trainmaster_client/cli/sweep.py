"""``trainmaster sweep``: a grid, or random draws, of hyperparameters as an array."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from trainmaster_client.cli.array_submission import send_array
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import complete_job
from trainmaster_client.cli.screen import JsonFlag
from trainmaster_client.cli.submit import RequestFile, Trial, parse_request
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.jobs.array_requests import ArrayWish
from trainmaster_client.jobs.job_conditions import with_conditions
from trainmaster_client.tuning.sweeps import drawn, grid

Ranges = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME=RANGE...",
        help="With --random: lr=log:1e-5..1e-2, layers=int:2..12, dropout=0..0.3, opt=adam,sgd.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Values that are swept over."""

    ranges: Ranges = None
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUES", help="lr=1e-4,3e-4 or seed=1-5; repeated: every combination."),
    ] = None
    random: Annotated[int | None, typer.Option(metavar="N", help="Draw N times from the ranges instead.")] = (
        None
    )
    seed: Annotated[int, typer.Option(help="With --random: the same seed draws the same values.")] = 0

    def values(self) -> Sequence[Mapping[str, str]]:
        """Return the values of each task. Raises InvalidArgumentError, InvalidOptionsError."""
        if (self.grid is None) is (self.random is None):
            hint = "Give --grid NAME=VALUES, or --random N NAME=RANGE..."
            raise InvalidArgumentError("One of --grid and --random is needed.", hint=hint)
        ranges = self.ranges or ()
        if self.random is not None:
            return drawn(ranges, count=self.random, seed=self.seed)
        if ranges:
            hint = f"Write --grid {ranges[0]}."
            raise InvalidArgumentError(f"{ranges[0]!r} goes with --random.", hint=hint)
        return grid(self.grid or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions:
    """The array that the sweep becomes."""

    at_most: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Tasks that may run at once; all that fit without.")
    ] = None
    stop_after: Annotated[
        int | None,
        typer.Option(
            "--stop-after-failures", min=0, metavar="N", help="Equal failures that hold the array; 0: never."
        ),
    ] = None
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the array, instead of the TrainingJobName.")
    ] = None
    after: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[TYPE:]JOB", help="Wait for this job or array; repeated.", autocompletion=complete_job
        ),
    ] = None


@with_options
def sweep(
    file: RequestFile,
    *,
    space: Space,
    options: SweepOptions,
    trial: Trial,
    as_json: JsonFlag = False,
) -> None:
    """Queue a grid or random draws of hyperparameters as one array; the request has their usual values."""
    trial.check()
    values = space.values()
    request: dict[str, Any] = parse_request(file.read(), source=file.name)
    if options.name is not None:
        request = {**request, "TrainingJobName": options.name}
    wish = ArrayWish(values=values, at_most=options.at_most, stop_after_failures=options.stop_after)
    request = with_conditions(request, options.after)
    send_array(request, wish, dry_run=trial.dry_run, team=trial.team, as_json=as_json)
