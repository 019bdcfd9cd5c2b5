"""``trainmaster policy``: look at the document, try one out, put one in force, and the pause switch."""

from typing import Annotated

import typer
import yaml
from rich.text import Text

from trainmaster_client.api import Document, field_problem
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.policy_diff import document_lines, job_lines
from trainmaster_client.cli.policy_file import parse_policy
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_lines
from trainmaster_client.errors import UnexpectedAnswerError

app = typer.Typer(
    help="Show, try out, replace or pause the policy. For admins.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

PolicyFile = Annotated[
    typer.FileBinaryRead, typer.Argument(metavar="FILE", help="YAML or JSON; - reads standard input.")
]

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@app.command()
def show(
    *,
    revision: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="An earlier one; without it the one in force.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Print the policy in force as YAML, ready to be edited and applied again."""
    document = connect().policy(revision)
    if as_json:
        print_json(document)
        return
    paused = ", paused: nothing starts" if document.get("paused") and revision is None else ""
    print(f"# revision {document.get('revision')}{paused}")
    print(yaml.safe_dump(document.get("policy"), sort_keys=False), end="")


@app.command()
def validate(file: PolicyFile, *, as_json: JsonFlag = False) -> None:
    """Let the API check a document, its rules and the jobs that need what it removes. Changes nothing."""
    document = connect().try_policy(parse_policy(file.read(), source=file.name))
    if as_json:
        print_json(document)
        return
    print_lines([f"{file.name} is valid."])
    _print_warnings(document)


@app.command()
def diff(file: PolicyFile, *, as_json: JsonFlag = False) -> None:
    """Show what a document would change: its lines, and what would become of jobs. Changes nothing."""
    new = parse_policy(file.read(), source=file.name)
    api = connect()
    tried = api.try_policy(new)
    if as_json:
        print_json(tried)
        return
    old = api.policy()
    lines = document_lines(
        old.get("policy"), new, old_name=f"revision {old.get('revision')}", new_name=file.name
    )
    for line in lines or [f"{file.name} says what revision {old.get('revision')} says."]:
        console().print(Text(line, style=_STYLES.get(line[:1], "")), soft_wrap=True)
    print()
    print_lines(list(job_lines(tried.get("changes") or ())) or ["No job would start, stop or wait for it."])
    if tried.get("truncated"):
        print_lines(["More jobs wait: only the first that ask for the same thing were looked at."])
    _print_warnings(tried)


@app.command()
def apply(file: PolicyFile, *, as_json: JsonFlag = False) -> None:
    """Check a policy document and put it in force; when refused, the old one stays."""
    document = connect().put_policy(parse_policy(file.read(), source=file.name))
    if as_json:
        print_json(document)
        return
    print_lines([f"Policy revision {document.get('revision')} is in force."])
    _print_warnings(document)


@app.command()
def rollback(
    revision: Annotated[
        int, typer.Argument(min=1, metavar="N", help="The revision whose document comes back.")
    ],
    *,
    as_json: JsonFlag = False,
) -> None:
    """Put the document of an earlier revision in force again, as a new revision."""
    api = connect()
    policy = api.policy(revision).get("policy")
    if not isinstance(policy, dict):
        raise UnexpectedAnswerError(api.api_url, what=f"no document in revision {revision}")
    document = api.put_policy(policy)
    if as_json:
        print_json(document)
        return
    now = document.get("revision")
    print_lines([f"Policy revision {now} is in force: the document of revision {revision}."])
    _print_warnings(document)


@app.command()
def pause(*, as_json: JsonFlag = False) -> None:
    """Stop starts and preemptions in all pools; running jobs run on."""
    _set_paused(True, "Paused: nothing starts and nobody is preempted; running jobs run on.", as_json=as_json)


@app.command()
def resume(*, as_json: JsonFlag = False) -> None:
    """Go on after a pause."""
    _set_paused(False, "Going on: jobs start in their turn.", as_json=as_json)


def _set_paused(paused: bool, said: str, *, as_json: bool) -> None:  # noqa: FBT001  the value itself
    document = connect().set_paused(paused)
    if as_json:
        print_json(document)
    else:
        print_lines([said])


def _print_warnings(document: Document) -> None:
    print_lines(f"Warning: {field_problem(warning)}" for warning in document.get("warnings") or ())
