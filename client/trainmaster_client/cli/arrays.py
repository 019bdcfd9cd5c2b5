"""``trainmaster arrays``, ``throttle`` and ``rerun``: arrays of jobs as a whole."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
from rich.table import Table

from trainmaster_client.api import field_problem
from trainmaster_client.cli.array_lines import array_sheet
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import CommandApi, completed, connect
from trainmaster_client.cli.known_names import complete_pool, complete_team, nearest
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_lines
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.jobs.array_views import ArrayView, array_view
from trainmaster_client.jobs.newer_routes import newer_route

STATES = ("pending", "held", "running", "completed", "failed", "stopped")
_HEADINGS = ("ARRAY", "TEAM", "POOL", "STATE", "DONE", "FAILED", "RUNNING", "WAITING", "HELD", "USD")
_FIRST_NUMBER = _HEADINGS.index("DONE")
LIFTED = "none"
"""The throttle that is none."""


def complete_array(incomplete: str) -> list[str]:
    return completed(incomplete, _names)


ArrayName = Annotated[
    str, typer.Argument(metavar="ARRAY", help="The array's name.", autocompletion=complete_array)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFilters:
    """Filters of the list: an array must match all of them."""

    mine: Annotated[bool, typer.Option("--mine", help="Only arrays that you submitted.")] = False
    state: Annotated[str | None, typer.Option(metavar="STATE", help="Only in this state.")] = None
    team: Annotated[
        str | None, typer.Option(metavar="TEAM", help="Only of this team.", autocompletion=complete_team)
    ] = None
    pool: Annotated[
        str | None, typer.Option(metavar="POOL", help="Only of this pool.", autocompletion=complete_pool)
    ] = None

    @property
    def parameters(self) -> dict[str, bool | str | None]:
        """Parameters of the API; an older stack refuses ``mine``, so it is sent only if it was asked for."""
        return {**asdict(self), "mine": self.mine or None}


@with_options
def arrays(
    array: Annotated[
        str | None,
        typer.Argument(metavar="[ARRAY]", help="Without it: all of them.", autocompletion=complete_array),
    ] = None,
    *,
    filters: ArrayFilters,
    as_json: JsonFlag = False,
) -> None:
    """List arrays with the counts of their tasks, or show one."""
    if array is not None and filters != ArrayFilters():
        raise InvalidArgumentError("A name does not go with filters such as --mine.", hint="Give one.")
    _require_state(filters.state)
    api = connect()
    with newer_route(api, "/arrays"):
        document = api.arrays(**filters.parameters) if array is None else api.array(array)
    if as_json:
        print_json(document)
    elif array is not None:
        print_lines(array_sheet(document))
    else:
        _print_list([array_view(entry) for entry in document.get("arrays") or ()])


def throttle(
    array: ArrayName,
    number: Annotated[str, typer.Argument(metavar="N|none", help="Tasks that may run at once.")],
    *,
    as_json: JsonFlag = False,
) -> None:
    """Change how many tasks of an array may run at once. Tasks that run go on."""
    is_number = number.isascii() and number.isdigit() and int(number) > 0
    if not is_number and number != LIFTED:
        raise InvalidArgumentError(
            f"{number!r} is not a throttle.", hint="Give a whole number from 1 on, or none."
        )
    at_most = None if number == LIFTED else int(number)
    document = connect().change_array(array, {"at_most": at_most})
    if as_json:
        print_json(document)
    else:
        print_lines([array_view(document).line])


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunOptions:
    """Tasks to run again, and how."""

    tasks: Annotated[
        str, typer.Option(metavar="INDICES", help="failed, or indices of tasks that ended, e.g. 3-7.")
    ] = "failed"
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the new array; the default is ARRAY-againN.")
    ] = None
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start from nothing, not from the checkpoints of the same index.")
    ] = False


@with_options
def rerun(array: ArrayName, *, options: RerunOptions, as_json: JsonFlag = False) -> None:
    """Submit tasks of an array again, as a new array with the same indices and values."""
    given = {"tasks": options.tasks, "name": options.name, "fresh": options.fresh or None}
    body: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    document = connect().rerun_array(array, body)
    if as_json:
        print_json(document)
        return
    print_lines([array_view(document.get("array") or {}).line])
    print_lines(f"Warning: {field_problem(warning)}" for warning in document.get("warnings") or ())


def _require_state(state: str | None) -> None:
    if state is not None and state not in STATES:
        near = nearest(state, STATES)
        hint = f"did you mean {near}?" if near else f"use one of {', '.join(STATES)}."
        raise InvalidArgumentError(f"--state: {state!r} is not a state of arrays;", hint=hint)


def _print_list(views: list[ArrayView]) -> None:
    if not views:
        print_lines(["No arrays."])
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for number, heading in enumerate(_HEADINGS):
        table.add_column(heading, justify="right" if number >= _FIRST_NUMBER else "left", no_wrap=True)
    for view in views:
        table.add_row(*_cells(view))
    console().print(table)


def _cells(view: ArrayView) -> tuple[str, ...]:
    tasks = view.tasks
    running = f"{tasks.running}" if view.at_most is None else f"{tasks.running} of {view.at_most}"
    counts = (
        f"{tasks.completed}/{tasks.total}",
        str(tasks.failed),
        running,
        str(tasks.waiting),
        str(tasks.held),
    )
    usd = "-" if view.usd is None else f"{view.usd:.2f}"
    return (view.name, view.team, view.pool, view.state, *counts, usd)


def _names(api: CommandApi) -> list[str]:
    return [str(array["name"]) for array in api.arrays(limit="100").get("arrays") or ()]
