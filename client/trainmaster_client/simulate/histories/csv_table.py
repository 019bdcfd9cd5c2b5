"""The columns and cells of a CSV file: what is missing, what to rename, and each value that is not valid."""

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Protocol, TypeVar

from trainmaster_client.simulate.histories.line_problems import LineProblems, listed, shown

REQUIRED = ("job_id", "submit_s", "gpus", "duration_s", "vc")
OPTIONAL = ("user", "name", "instance_type", "requested_s", "priority", "checkpoint_every_s", "end")
OPENB = ("task_id", "submit_s", "start_s", "end_s", "gpus", "gpu_milli", "gpu_spec", "qos", "phase")
"""Columns of Alibaba's GPU-sharing cluster (2023)."""
_SHORT: Mapping[str, str] = {
    "id": "job_id",
    "submitted": "submit_s",
    "seconds": "duration_s",
    "gpus": "gpus",
    "group": "vc",
    "program": "name",
}
"""Shorter names of columns, which are known where the first five are all there."""
_SIMILAR: Mapping[str, tuple[str, ...]] = {
    "job_id": ("id", "job", "jobid", "job_name", "task", "task_id", "jid"),
    "submit_s": (
        "submit",
        "submitted",
        "submit_time",
        "submission_time",
        "submitted_at",
        "arrival",
        "timestamp",
    ),
    "gpus": ("gpu", "num_gpus", "num_gpu", "n_gpus", "gpu_num", "gpu_count", "plan_gpu", "gpus_requested"),
    "duration_s": ("duration", "run_time", "runtime", "runtime_s", "seconds", "elapsed", "service_time"),
    "vc": ("team", "tenant", "group", "queue", "account", "project", "virtual_cluster", "department"),
}
"""Other names that a column goes by."""

LONGEST_NAME = 200
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_Value = TypeVar("_Value")


class _Reader(Protocol):
    """The interface of ``csv.reader``."""

    line_num: int

    def __next__(self) -> list[str]: ...


class Cells:
    """The values of one line; what is wrong with one is noted, and something valid stands in for it."""

    def __init__(self, line: int, values: Mapping[str, str], problems: LineProblems) -> None:
        self.line = line
        self._values = values
        self._problems = problems

    def text(self, column: str, *, optional: bool = False) -> str:
        value = self._values.get(column, "").strip()
        if not value and not optional:
            self.refuse(column, "is empty", "write a value, or leave the line out")
        elif len(value) > LONGEST_NAME or not value.isprintable():
            self.refuse(
                column, f"{shown(value)} is too long or not printable", f"use at most {LONGEST_NAME} letters"
            )
        return value

    def number(self, column: str, *, least: float, most: float, what: str) -> float:
        text = self.text(column)
        value = float(text) if _NUMBER.fullmatch(text) else math.nan
        if text and not least <= value <= most:
            size = f"at most {most:g}" if value > most else f"{least:g} or more"
            self.refuse(column, f"{shown(text)} is not a valid {what}", f"use a number, {size}")
        return value if least <= value <= most else 1.0

    def whole(self, column: str, *, least: int, most: int, what: str) -> int:
        value = self.number(column, least=least, most=most, what=what)
        if not value.is_integer():
            self.refuse(column, f"{value:g} is not a valid {what}", "use a whole number")
        return int(value)

    def given(self, column: str, read: Callable[[str], _Value]) -> _Value | None:
        """Read a cell; None if the column is missing or the cell is empty."""
        return read(column) if self._values.get(column, "").strip() else None

    def word(self, column: str, known: Mapping[str, _Value]) -> _Value:
        text = self.text(column)
        if text and text not in known:
            self.refuse(column, f"{shown(text)} is not known", f"use one of {', '.join(known)}")
        return known.get(text, next(iter(known.values())))

    def refuse(self, column: str, message: str, hint: str) -> None:
        self._problems.add(self.line, column, message, hint)


def table(lines: Iterable[str], problems: LineProblems) -> tuple[tuple[str, ...], Iterator["Cells"]]:
    """Return the columns, and the cells of each further line.

    Raises MalformedHistoryError for a wrong first line.
    """
    reader = csv.reader(lines, strict=True)
    header = _full_names(tuple(name.strip() for name in _next(reader, problems) or ()))
    _check_header(header, problems)
    problems.raise_any()
    return header, _cells(reader, header, problems)


def _full_names(header: tuple[str, ...]) -> tuple[str, ...]:
    """Return the header with the columns' full names."""
    short = [_SHORT.get(name.lower(), name) for name in header]
    return tuple(short) if set(REQUIRED) <= set(short) and not set(REQUIRED) <= set(header) else header


def _next(reader: _Reader, problems: LineProblems) -> list[str] | None:
    """Return the next line; None if there is no further line that can be read."""
    try:
        return next(reader)
    except StopIteration:
        return None
    except csv.Error as error:
        problems.add(
            reader.line_num, "", f"is not CSV: {error}", "quote what has commas in it, double quotes in it"
        )
        return None


def _cells(reader: _Reader, header: Sequence[str], problems: LineProblems) -> Iterator["Cells"]:
    while (values := _next(reader, problems)) is not None:
        if not any(value.strip() for value in values):
            continue
        if len(values) != len(header):
            message = f"has {len(values)} values, there are {len(header)} columns"
            problems.add(reader.line_num, "", message, "write one value for each column")
            continue
        yield Cells(reader.line_num, dict(zip(header, values, strict=True)), problems)


def _check_header(header: Sequence[str], problems: LineProblems) -> None:
    missing = [name for name in REQUIRED if name not in header]
    twice = sorted({name for name in header if header.count(name) > 1})
    if not any(header):
        problems.add(1, "", "there are no columns: the file is empty", f"begin it with {','.join(REQUIRED)}")
    elif (name := _other_separator(header)) is not None:
        problems.add(1, "", f"the columns are separated by {name}", "save the file with commas")
    elif header[0].startswith("{"):
        problems.add(1, "", "this is JSON", "give a history that trainmaster exported to --history")
    elif missing and not set(OPENB) <= set(header):
        _refuse_columns(header, missing, problems)
    if twice:
        problems.add(1, "", f"columns that are there twice: {listed(twice)}", "leave one of each")


def _other_separator(header: Sequence[str]) -> str | None:
    if len(header) > 1:
        return None
    return next((name for mark, name in _OTHER_SEPARATORS.items() if mark in header[0]), None)


def _refuse_columns(header: Sequence[str], missing: Sequence[str], problems: LineProblems) -> None:
    problems.add(
        1,
        "",
        f"missing columns: {', '.join(missing)}; found: {listed(header)}",
        f"a trace needs {', '.join(REQUIRED)}",
    )
    for name in missing:
        if (similar := _similar(name, header)) is not None:
            problems.add(1, similar, f"looks like {name}", f"rename it to {name}")


def _similar(name: str, header: Sequence[str]) -> str | None:
    """Return the column that is most likely meant, of those that mean nothing else."""
    free = {
        column.lower().replace(" ", "_"): column for column in header if column not in {*REQUIRED, *OPTIONAL}
    }
    known = next((free[other] for other in (name, *_SIMILAR[name]) if other in free), None)
    near = get_close_matches(name, free, n=1, cutoff=0.75)
    return known or (free[near[0]] if near else None)
