"""Writes output: tables fitted to a terminal, whole lines into a pipe, JSON untouched."""

import json
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TextIO, cast

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the API's JSON and nothing else.")]

UNLIMITED_COLUMNS = 10_000
LONG_SECONDS = 2.0
"""Seconds after which a command says what it waits for."""


class _Trimmed:
    """A file without the blanks that rich fills lines up with; it writes whole lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(re.sub(r" +$", "", text, flags=re.MULTILINE))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  the file's
        return getattr(self._stream, name)


def console(stream: TextIO | None = None, *, wide: bool = False) -> Console:
    """Make a console. A pipe has no width: cutting names would break a grep. COLUMNS overrides both.

    ``wide`` has none on a terminal either.
    """
    stream = stream or sys.stdout
    fitted = not wide and (stream.isatty() or "COLUMNS" in os.environ)
    return Console(
        file=stream if stream.isatty() else cast(TextIO, _Trimmed(stream)),
        width=None if fitted else UNLIMITED_COLUMNS,
        markup=False,
        highlight=False,
        emoji=False,
        stderr=stream is sys.stderr,
    )


def print_lines(lines: Iterable[str], *, to: Console | None = None) -> None:
    """Print lines; one too long for the screen continues below its own beginning."""
    screen = to or console()
    for line in lines:
        text = line.lstrip()
        if not text:
            screen.print()
            continue
        screen.print(Padding(Text(text), (0, 0, 0, len(line) - len(text)), expand=False))


def print_whole(picture: RenderableType, *, to: Console) -> None:
    """Print a picture that was fitted; longer lines are the terminal's to wrap."""
    to.print(picture, soft_wrap=to.width >= UNLIMITED_COLUMNS)


def print_json(document: Any) -> None:  # noqa: ANN401  whatever the API said
    print(json.dumps(document, indent=2))


def print_json_line(document: Any) -> None:  # noqa: ANN401  likewise
    """Print one of several documents on a line of its own, at once."""
    print(json.dumps(document), flush=True)


def say(text: str) -> None:
    """Print a notice beside the output: on standard error."""
    print_lines(text.splitlines(), to=console(sys.stderr))


@contextmanager
def busy(doing: str, *, after: float = LONG_SECONDS) -> Iterator[None]:
    """Show on a terminal what takes longer than ``after`` seconds, and wipe it off at its end."""
    screen = console(sys.stderr)
    if not screen.is_terminal or screen.is_dumb_terminal:
        yield
        return
    status = screen.status(f"{doing} ...")
    late = threading.Timer(after, status.start)
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()
        late.join()
        status.stop()
