"""Rows as CSV for spreadsheets; no cell of it is a formula."""

import csv
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""OWASP, "CSV Injection"."""

Cell = str | int | float | None


def print_csv(headings: Sequence[str], rows: Iterable[Sequence[Cell]], *, to: TextIO | None = None) -> None:
    """Print rows as CSV; lines end with a line feed, and None is an empty cell."""
    writer = csv.writer(to or sys.stdout, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows([harmless(cell) for cell in row] for row in rows)


def harmless(cell: Cell) -> Cell:
    """Put an apostrophe before text that a spreadsheet would compute; numbers stay numbers."""
    if isinstance(cell, str) and any(text.startswith(_BEGINS_A_FORMULA) for text in (cell, cell.lstrip())):
        return f"'{cell}"
    return cell
