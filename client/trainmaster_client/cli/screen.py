"""Where output goes: tables fitted to a terminal, whole lines into a pipe, JSON untouched."""

import json
import os
import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the API's JSON and nothing else.")]

UNLIMITED_COLUMNS = 10_000


def console() -> Console:
    """A pipe has no width: cutting names there would break the reader's grep. COLUMNS overrides both."""
    fitted = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if fitted else UNLIMITED_COLUMNS, markup=False, highlight=False, emoji=False)


def print_lines(lines: Iterable[str]) -> None:
    """A line too long for the screen goes on below its own beginning."""
    screen = console()
    for line in lines:
        text = line.lstrip()
        screen.print(Padding(Text(text), (0, 0, 0, len(line) - len(text)), expand=False))


def print_json(document: Any) -> None:  # noqa: ANN401  whatever the API said
    print(json.dumps(document, indent=2))
