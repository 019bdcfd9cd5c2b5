"""Options of ``trainmaster simulate``: where jobs come from, what is compared, what is written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

TRACE_LOAD = 0.95
"""Load of the pools that a trace is replayed in: a trace comes from a cluster of another size."""


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Source of the jobs: exactly one."""

    from_account: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Your stack's own history since then, e.g. 30d. For admins."),
    ] = None
    history: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file of history-export.", exists=True, dir_okay=False),
    ] = None
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A CSV file, a job a line.", exists=True, dir_okay=False),
    ] = None
    from_sagemaker: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="SageMaker's own record since then, e.g. 90d; needs no stack."),
    ] = None
    team_tag: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="With --from-sagemaker: the tag whose value is the team."),
    ] = None
    team_map: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TEAM", help="Call a team of the history by a name of the policy."),
    ] = None
    seeds: Annotated[
        str,
        typer.Option("--seeds", "--seed", metavar="N,...", help="What a trace lacks is drawn from these."),
    ] = "1"


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """Policies to compare."""

    policy: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A policy, a column. Repeatable.", exists=True, dir_okay=False),
    ] = None
    capacity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE=N",
            help="Other capacity (TYPE:spot=N for spot): one more column; of a trace, of all columns.",
        ),
    ] = None
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="team:NAME|rule:NAME", help="One more column, without that team or rule."),
    ] = None
    plan: Annotated[
        list[str] | None,
        typer.Option(
            metavar="type=TYPE,instances=N,from=TIME,to=TIME,fee=USD",
            help="One more column, with this training plan as if it had been bought. Repeatable.",
        ),
    ] = None
    load: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help=f"Size the pools so that jobs use this share. For a trace {TRACE_LOAD}, else off.",
        ),
    ] = None
    capacity_as_written: Annotated[
        bool, typer.Option("--capacity-as-written", help="Of a trace: do not size the pools.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    ask: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="When would this job have started? JSON: a CreateTrainingJob request, or instance_type, "
            "instance_count, priority, team.",
            exists=True,
            dir_okay=False,
        ),
    ] = None
    report_file: Annotated[
        Path | None, typer.Option("--json", metavar="PATH", help="Write every record and figure there.")
    ] = None
    page_file: Annotated[
        Path | None,
        typer.Option("--html", metavar="PATH", help="Write a page with pictures there, one file."),
    ] = None
