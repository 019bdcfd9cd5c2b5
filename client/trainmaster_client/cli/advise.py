"""``trainmaster advise``: one job in several shapes, tried on the API, and which one to take."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text
from trainmaster.core.request.options import Alternative

from trainmaster_client.advice.assessments import Assessment, Assessor
from trainmaster_client.advice.ranking import By, Recommendation, ranked, recommend
from trainmaster_client.advice.shapes import read_shapes
from trainmaster_client.advice.spot_scores import SpotScores
from trainmaster_client.api import Document
from trainmaster_client.cli.advice_lines import as_json, lines, tag_lines
from trainmaster_client.cli.connection import aws_session, connect
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_lines
from trainmaster_client.cli.submit import NOT_VALID, RequestFile, parse_request
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.http.printable import printable

Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="TYPE=COUNT[:spot][@SUBNET]",
        help="Compare this shape too, as in ml.g5.xlarge=4:spot. May be given several times.",
    ),
]
SortKey = Annotated[
    By, typer.Option("--by", help="What matters: an early start, a low cost, few interruptions.")
]


def advise(
    file: RequestFile, *, shape: Shapes = None, by: SortKey = By.START, as_json_: JsonFlag = False
) -> None:
    """Compare the shapes that a job could run in; nothing is stored."""
    request = parse_request(file.read(), source=file.name)
    more = [one for text in shape or () for one in read_shapes(text, where="--shape")]
    with _progress() as tell:
        assessor = Assessor(connect(quiet=True), request, SpotScores(aws_session()), tell=tell)
        order, best, tried = _advice(assessor, more, by)
    if as_json_:
        print_json(as_json(order, best, tried))
    else:
        print_lines(lines(order, now=datetime.now(UTC)))
        print_lines(tag_lines(best, tried))
    if best is None:
        raise typer.Exit(NOT_VALID)


def _advice(
    assessor: Assessor, more: list[Alternative], by: By
) -> tuple[list[Assessment], Recommendation | None, Document | None]:
    """In order, with the best one, and the dry run of the tag that says so."""
    try:
        order = ranked(assessor.assess(more), by)
        best = recommend(order, by)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
    tried = assessor.try_shapes(best.shapes) if best is not None and best.shapes else None
    return order, best, tried


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """On a terminal only, and not on standard output: each shape takes the API a second or two."""
    with console(sys.stderr).status("Asking for the pools") as status:
        yield lambda shape: status.update(Text(f"Trying {printable(shape)}"))
