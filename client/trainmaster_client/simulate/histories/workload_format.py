"""Reads the Standard Workload Format: a job a line in 18 columns, comments behind semicolons, -1 for unknown.

Source: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html. Processors are taken as GPUs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from trainmaster.core.policy import DEFAULT_TEAM

from trainmaster_client.simulate.histories.csv_table import Cells
from trainmaster_client.simulate.histories.line_problems import LineProblems, count_of

COLUMNS = 18
COMMENT, UNKNOWN = ";", "-1"
_LEAST_NUMBERS = 10
"""Numbers of a first line, without a comma, from which on it can be nothing else."""
_JOB, _SUBMIT, _RUN, _ALLOCATED, _ASKED_PROCESSORS, _REQUESTED = 0, 1, 3, 4, 7, 8
_STATUS, _USER, _GROUP, _PROGRAM = 10, 11, 12, 13
_PARTS = frozenset({"2", "3", "4"})
"""Statuses of a part of a job; the whole job has a line of its own."""
_ENDS: Mapping[str, str] = {"0": "failed", "1": "completed", "5": "stopped", UNKNOWN: ""}


def peeked(lines: Iterable[str]) -> tuple[str, Iterator[str]]:
    """Return the first line that is not blank, and all lines from the first on."""
    rest, seen = iter(lines), []
    for line in rest:
        seen.append(line)
        if line.strip():
            return line.strip(), chain(seen, rest)
    return "", iter(seen)


def is_workload_format(first_line: str) -> bool:
    """Tell the format by the first line: a comment, or many numbers with blanks between them."""
    numbers = first_line.split()
    return first_line.startswith(COMMENT) or (
        len(numbers) >= _LEAST_NUMBERS and all(_is_number(number) for number in numbers)
    )


def workload_cells(lines: Iterable[str], problems: LineProblems) -> Iterator[Cells | None]:
    """Yield each job's cells, by the columns of a CSV trace; None for a job that never ran or has no size."""
    for number, line in enumerate(lines, start=1):
        values = line.split()
        if not values or values[0].startswith(COMMENT):
            continue
        if len(values) != COLUMNS:
            message = f"has {count_of(len(values), 'value')}, the Standard Workload Format has {COLUMNS}"
            problems.add(number, "", message, f"write all columns, {UNKNOWN} where one is unknown")
        elif values[_STATUS] not in _PARTS:
            yield _cells(number, values, problems)


def _cells(line: int, values: Sequence[str], problems: LineProblems) -> Cells | None:
    processors = next((values[at] for at in (_ALLOCATED, _ASKED_PROCESSORS) if _is_known(values[at])), None)
    if processors is None or not _is_known(values[_RUN]):
        return None
    if values[_STATUS] not in _ENDS:
        known = ", ".join(sorted({*_ENDS, *_PARTS}))
        problems.add(line, "end", f"{values[_STATUS]!r} is not a status", f"use one of {known} in column 11")
    content = {
        "job_id": values[_JOB],
        "submit_s": values[_SUBMIT],
        "gpus": processors,
        "duration_s": values[_RUN],
        "vc": _named("group", values[_GROUP]) or DEFAULT_TEAM,
        "user": _named("user", values[_USER]),
        "name": _named("program", values[_PROGRAM]),
        "requested_s": values[_REQUESTED] if _is_known(values[_REQUESTED]) else "",
        "end": _ENDS.get(values[_STATUS], ""),
    }
    return Cells(line, content, problems)


def _is_known(value: str) -> bool:
    """Tell whether a time or a size is one: logs write 0 as well as -1 where there was none."""
    return not _is_number(value) or float(value) not in {-1, 0}


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _named(kind: str, value: str) -> str:
    return "" if _is_number(value) and float(value) == float(UNKNOWN) else f"{kind}{value}"
