"""``trainmaster results``: what came of each task of an array, with its values and final metrics."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.table import Table

from trainmaster_client.cli.arrays import ArrayName
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import aws_client, connect
from trainmaster_client.cli.csv_output import print_csv
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_lines, say
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.hooks.array_results import ArrayResults, read_results

_SHOWN_OF_TASK = ("state", "cost_usd", "why")
"""Facts behind values and metrics in the table; CSV and JSON have all."""
_HIDDEN = frozenset({"name", "attempt", "started_at", "ended_at"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultOptions:
    """The order of the tasks, and the form of the table."""

    by: Annotated[
        str | None, typer.Option(metavar="METRIC", help="The best task first: the smallest value.")
    ] = None
    largest: Annotated[bool, typer.Option("--largest", help="With --by: the largest value is the best.")] = (
        False
    )
    as_csv: Annotated[bool, typer.Option("--csv", help="As CSV.")] = False


@with_options
def results(array: ArrayName, *, options: ResultOptions, as_json: JsonFlag = False) -> None:
    """Show values, final metrics, state and cost of each task of an array."""
    if options.as_csv and as_json:
        raise InvalidArgumentError("--csv and --json exclude each other.", hint="Write one of them.")
    if options.largest and options.by is None:
        raise InvalidArgumentError("--largest goes with --by.", hint="Name the metric: --by METRIC.")
    table = read_results(connect(), array, make_client=lambda: aws_client("sagemaker"))
    if options.by is not None:
        _require_metric(table, options.by)
        table = table.best_first(options.by, largest=options.largest)
    records = list(table.records())
    if table.note:
        say(table.note)
    if as_json:
        print_json({"array": array, "tasks": records})
    elif options.as_csv:
        columns = list(records[0]) if records else []
        print_csv(columns, ([record[column] for column in columns] for record in records))
    elif records:
        console().print(_table(records))
    else:
        print_lines(["No tasks."])


def _require_metric(results: ArrayResults, metric: str) -> None:
    """Refuse a metric that no task has, once one has any."""
    known = results.metric_names
    if known and metric not in known:
        raise InvalidArgumentError(
            f"--by: no task has the metric {metric!r}.", hint=f"Use {', '.join(known)}."
        )
    if not known and not results.note:
        say("No task has a metric: the request has no MetricDefinitions, or no task printed one.")


def _table(records: list[dict[str, Any]]) -> Table:
    columns = [column for column in records[0] if column not in _HIDDEN]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.upper() if column == "index" or column in _SHOWN_OF_TASK else column)
    for record in records:
        table.add_row(*(_cell(record[column]) for column in columns))
    return table


def _cell(value: Any) -> str:  # noqa: ANN401  a text, a number or none
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
