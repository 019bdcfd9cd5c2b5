"""``trainmaster policy``: show the document, try one out, put one in force; the pause switch."""

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.text import Text

from trainmaster_client.api import Document, field_problem
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_lines
from trainmaster_client.errors import InvalidArgumentError, PolicyViolationError, UnexpectedAnswerError
from trainmaster_client.http.answers import printable
from trainmaster_client.policies.policy_document import parse_policy
from trainmaster_client.policies.policy_places import PolicyPlaces

if TYPE_CHECKING:
    from trainmaster_client.cli.asked_replays import AskedReplay

app = typer.Typer(
    help="Show, try out, replace or pause the policy. For admins.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

PolicyFile = Annotated[
    typer.FileBinaryRead, typer.Argument(metavar="FILE", help="YAML or JSON; - reads standard input.")
]

_STYLES = {"+": "green", "-": "red", "@": "cyan"}

_MEANINGS = {
    "forbidden": "would be refused when it is due to start",
    "impossible": "can never start",
    "preempted": "would be stopped for another job and come back",
    "stops-waiting": "would wait no longer",
    "starts": "would start",
    "waits": "would wait",
}
"""Worst news first."""

_RANKS = {kind: rank for rank, kind in enumerate(_MEANINGS)}

NO_NAME = "a job"

_SHOWN_HEAD = re.compile(r"\A# revision [0-9]+(?:, paused: nothing starts)?\r?\n")
_MOST_TEXT_BYTES, _MOST_BODY_BYTES = 100 * 1024, 256 * 1024
"""UTF-8 bytes of a policy's text, and of the request's body; the API takes no more."""


@app.command()
def show(
    *,
    revision: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="An earlier one; without it the one in force.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Print the policy in force as it was written, ready to be edited and applied again."""
    document = connect().policy(revision)
    if as_json:
        print_json(document)
        return
    paused = ", paused: nothing starts" if document.get("paused") and revision is None else ""
    print(f"# revision {document.get('revision')}{paused}")
    policy, text = document.get("policy"), document.get("text")
    if isinstance(text, str) and _says(text, policy):
        print(text, end="" if text.endswith("\n") else "\n")
        return
    if text is not None:
        print("# The text that was kept with it says something else; this is the document.")
    print(yaml.safe_dump(policy, sort_keys=False), end="")


@app.command()
def validate(file: PolicyFile, *, as_json: JsonFlag = False) -> None:
    """Let the API check a document, its rules and the jobs that need what it removes. Changes nothing."""
    written = file.read()
    policy = parse_policy(written, source=file.name)
    with _placed(written, policy) as places:
        document = connect().try_policy(policy)
    if as_json:
        print_json(document)
        return
    print_lines([f"{file.name} is valid.", *clock_lines(document.get("by_the_clock") or ())])
    _print_warnings(document, places)


@app.command()
def diff(
    file: PolicyFile,
    *,
    replay: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Replay the account's jobs since then under both, e.g. 14d."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="PATH", help="With --replay: write the whole report there.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what a document would change: its lines, and what would become of jobs. Changes nothing."""
    if html is not None and replay is None:
        raise InvalidArgumentError("--html needs --replay.", hint="Give the time to replay: --replay 14d.")
    asked_replay = None if replay is None else _asked_replay(replay, file.name, html)
    written = file.read()
    new = parse_policy(written, source=file.name)
    api = connect()
    with _placed(written, new) as places:
        tried = api.try_policy(new)
    if as_json:
        replayed = {"replay": {"summary": asked_replay.replayed(api, new)}} if asked_replay else {}
        print_json({**tried, **replayed})
        return
    old = api.policy()
    lines = document_lines(
        old.get("policy"), new, old_name=f"revision {old.get('revision')}", new_name=file.name
    )
    for line in lines or [f"{file.name} is the same as revision {old.get('revision')}."]:
        console().print(Text(line, style=_STYLES.get(line[:1], "")), soft_wrap=True)
    print()
    print_lines(list(job_lines(tried.get("changes") or ())) or ["No job would start, stop or wait for it."])
    if tried.get("truncated"):
        print_lines(["More jobs wait: only the first that ask for the same thing were looked at."])
    print_lines(clock_lines(tried.get("by_the_clock") or ()))
    _print_warnings(tried, places)
    if asked_replay is not None:
        print_lines(["", *asked_replay.replayed(api, new), *asked_replay.closing])


def _asked_replay(text: str, name: str, html: Path | None) -> "AskedReplay":
    from trainmaster_client.cli.asked_replays import AskedReplay  # noqa: PLC0415  half a second, for few commands

    return AskedReplay.of(text, name=name, html=html)


@app.command()
def apply(file: PolicyFile, *, as_json: JsonFlag = False) -> None:
    """Check a policy document and put it in force; when refused, the old one stays."""
    written = file.read()
    policy = parse_policy(written, source=file.name)
    text = _text_to_keep(written, policy)
    with _placed(written, policy) as places:
        document = connect().put_policy(policy, text=text)
    if as_json:
        print_json(document)
        return
    print_lines([f"Policy revision {document.get('revision')} is in force."])
    if text is None:
        print_lines(
            ["The file is too large to be kept; policy show will print the document, without comments."]
        )
    _print_warnings(document, places)


@app.command()
def rollback(
    revision: Annotated[
        int, typer.Argument(min=1, metavar="N", help="The revision whose document to restore.")
    ],
    *,
    as_json: JsonFlag = False,
) -> None:
    """Put the document of an earlier revision in force again, as a new revision."""
    api = connect()
    earlier = api.policy(revision)
    policy, text = earlier.get("policy"), earlier.get("text")
    if not isinstance(policy, dict):
        raise UnexpectedAnswerError(api.api_url, what=f"no document in revision {revision}")
    document = api.put_policy(policy, text=text if isinstance(text, str) else None)
    if as_json:
        print_json(document)
        return
    now = document.get("revision")
    print_lines([f"Policy revision {now} is in force: the document of revision {revision}."])
    _print_warnings(document)


@app.command()
def pause(*, as_json: JsonFlag = False) -> None:
    """Stop starts and preemptions in all pools; running jobs continue."""
    _set_paused(True, "Paused: no job starts or is preempted; running jobs continue.", as_json=as_json)


@app.command()
def resume(*, as_json: JsonFlag = False) -> None:
    """Resume starts and preemptions after a pause."""
    _set_paused(False, "Resumed: jobs start in queue order.", as_json=as_json)


def _set_paused(paused: bool, confirmation: str, *, as_json: bool) -> None:  # noqa: FBT001  the value itself
    document = connect().set_paused(paused)
    if as_json:
        print_json(document)
    else:
        print_lines([confirmation])


@contextmanager
def _placed(written: bytes, document: Mapping[str, Any]) -> Iterator[PolicyPlaces]:
    """Give a refusal of a file the lines and names of its fields: among 40 pools nobody counts to 17."""
    places = PolicyPlaces(written, document)
    try:
        yield places
    except PolicyViolationError as error:
        raise PolicyViolationError(places.problem(error.problem)) from error


def _print_warnings(document: Document, places: PolicyPlaces | None = None) -> None:
    warnings = [field_problem(warning) for warning in document.get("warnings") or ()]
    placed = [warning if places is None else places.field_problem(warning) for warning in warnings]
    print_lines(f"Warning: {warning}" for warning in placed)


def _says(text: str, policy: object) -> bool:
    """Tell whether a text kept with a document means it: the API cannot read YAML."""
    try:
        meant = parse_policy(text.encode(), source="the text")
    except InvalidArgumentError:
        return False
    return bool(json.loads(json.dumps(meant)) == policy)


def _text_to_keep(written: bytes, policy: Mapping[str, Any]) -> str | None:
    """Return the text without the line that ``policy show`` adds; None if the API would not take it."""
    is_utf16 = written.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # else YAML is UTF-8
    text = _SHOWN_HEAD.sub("", written.decode("utf-16" if is_utf16 else "utf-8-sig"))
    body = json.dumps({"policy": policy, "text": text})
    fits = len(text.encode()) <= _MOST_TEXT_BYTES and len(body) <= _MOST_BODY_BYTES
    return text if fits else None


def document_lines(old: object, new: object, *, old_name: str, new_name: str) -> list[str]:
    """Return a unified diff of both as YAML; the order of keys in a mapping makes no difference."""
    return list(unified_diff(_lines(old), _lines(new), old_name, new_name, lineterm=""))


def job_lines(changes: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line a job, the worst news first."""
    for change in sorted(changes, key=lambda entry: _RANKS.get(_kind(entry), -1)):
        place = f"team {printable(change.get('team'))}, pool {printable(change.get('pool'))}"
        meaning = _MEANINGS.get(_kind(change), _kind(change))
        if change.get("judged_at") == "submission":
            meaning = "stays in the queue"
        message = printable(change.get("message"))
        name = printable(change.get("job")) or NO_NAME
        yield f"{name} ({place}) {meaning}{f': {message}' if message else ''}"


def clock_lines(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what calendars and reservations change in the next days, a line each; none if nothing."""
    if changes:
        yield "By the clock, in the next 7 days:"
    for change in changes:
        yield f"  {printable(change.get('pool'))}, {printable(change.get('message'))}"


def _kind(change: Mapping[str, Any]) -> str:
    return printable(change.get("change"))


def _lines(document: object) -> list[str]:
    return yaml.safe_dump(_ordered(document), sort_keys=False).splitlines()


def _ordered(value: object) -> object:
    """Sort keys, ``name`` first, so that two ways of writing one document are equal."""
    if isinstance(value, list):
        return [_ordered(child) for child in value]
    if not isinstance(value, Mapping):
        return value
    return {key: _ordered(value[key]) for key in sorted(value, key=lambda key: (key != "name", str(key)))}
