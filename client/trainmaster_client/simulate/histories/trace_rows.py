"""The rows of a trace, a file with a job a line: every value checked, every mistake with its place."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TextIO

from trainmaster.core.memory.accelerators import gpus as gpus_of
from trainmaster.core.policy import DEFAULT_TEAM
from trainmaster.core.request.options import MAX_PRIORITY

from trainmaster_client.simulate.histories.csv_table import OPENB, OPTIONAL, REQUIRED, Cells, table
from trainmaster_client.simulate.histories.line_problems import LineProblems, shown
from trainmaster_client.simulate.histories.trace_draws import PRIORITIES, Klass
from trainmaster_client.simulate.histories.workload_format import is_workload_format, peeked, workload_cells

END: Mapping[str, Literal["completed", "failed", "stopped"]] = {
    "completed": "completed",
    "failed": "failed",
    "stopped": "stopped",
}
_PHASES: Mapping[str, Literal["completed", "failed"] | None] = {
    "Running": None,
    "Succeeded": "completed",
    "Failed": "failed",
    "Pending": None,
}
"""End of an openb job by its last phase; None if it had not ended when the trace was recorded."""
_CLASSES: Mapping[str, Klass] = {
    "LS": Klass.HIGH,
    "Guaranteed": Klass.HIGH,
    "Burstable": Klass.NORMAL,
    "BE": Klass.LOW,
}
"""Class of an openb job by quality of service: latency-sensitive, guaranteed, burstable, best effort."""
_WHOLE_GPU = 1000

MOST_SECONDS = 10 * 365 * 86_400
MOST_GPUS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """A job of the trace; a field is None if the trace does not tell."""

    job_id: str
    submit_s: float
    gpus: int
    duration_s: float
    vc: str | None
    user: str | None = None
    name: str | None = None
    instance_type: str | None = None
    requested_s: float | None = None
    priority: int | None = None
    checkpoint_every_s: float | None = None
    """0: it saves nothing."""
    end: Literal["completed", "failed", "stopped"] | None = None
    is_cut: bool = False
    """Whether it still ran when the trace was recorded: ``duration_s`` is the time up to then."""


@dataclass(slots=True, kw_only=True)
class TraceRows:
    """The rows and columns of a file."""

    rows: list[TraceRow] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Columns that mean nothing here."""
    is_openb: bool = False
    is_workload_format: bool = False
    """Whether it is in the Standard Workload Format."""
    never_placed: int = 0
    """Tasks of openb without a start, and jobs of a workload that never ran or have no size.

    They are not among ``rows``.
    """
    shared: int = 0
    """Tasks that had a share of a GPU."""
    limited: int = 0
    """Tasks that would run on some kinds of GPU only."""
    unfinished: int = 0
    """Tasks that were still running when it was recorded."""


def read_rows(lines: TextIO, *, where: str) -> TraceRows:
    """Read a trace with the five columns or more of the known ones, of openb, or of a workload.

    The content tells which it is.

    Raises MalformedHistoryError, which has every mistake with its line.
    """
    problems = LineProblems(where=where)
    first, every_line = peeked(lines)
    if is_workload_format(first):
        trace = _workload(workload_cells(every_line, problems))
    else:
        header, body = table(every_line, problems)
        trace = _openb(body) if set(OPENB) <= set(header) else _own(body)
        known = OPENB if trace.is_openb else (*REQUIRED, *OPTIONAL)
        trace.columns = header
        trace.ignored = tuple(name for name in header if name not in known)
    if not trace.rows and not problems.count:
        header_only = "comments" if trace.is_workload_format else "a line of columns"
        what = "has no jobs that ran" if trace.never_placed else f"has {header_only} and no jobs"
        problems.add(1, "", what, "add a line for each job")
    problems.raise_any()
    return trace


def _own(body: Iterator[Cells]) -> TraceRows:
    trace = TraceRows()
    first: dict[str, int] = {}
    for cells in body:
        row = _row(cells)
        _refuse_second(cells, "job_id", row.job_id, first)
        trace.rows.append(row)
    return trace


def _workload(body: Iterator[Cells | None]) -> TraceRows:
    trace = TraceRows(is_workload_format=True)
    first: dict[str, int] = {}
    for cells in body:
        if cells is None:
            trace.never_placed += 1
            continue
        row = _row(cells)
        _refuse_second(cells, "job_id", row.job_id, first)
        trace.rows.append(row)
    return trace


def _openb(body: Iterator[Cells]) -> TraceRows:
    """Read openb's tasks; those never placed have no run time and are left out."""
    trace = TraceRows(is_openb=True)
    first: dict[str, int] = {}
    for cells in body:
        row, phase = _openb_row(cells), cells.word("phase", _PHASES)
        _refuse_second(cells, "task_id", cells.text("task_id"), first)
        trace.shared += cells.whole("gpu_milli", least=1, most=1000, what="share of a GPU") < _WHOLE_GPU
        trace.limited += bool(cells.given("gpu_spec", cells.text))
        if row is None:
            trace.never_placed += 1
        else:
            trace.unfinished += phase is None
            trace.rows.append(row)
    return trace


def _openb_row(cells: Cells) -> TraceRow | None:
    began_s = cells.given("start_s", lambda column: _instant(cells, column))
    ended_s = cells.given("end_s", lambda column: _instant(cells, column))
    submit_s = _instant(cells, "submit_s")
    gpus = cells.whole("gpus", least=1, most=MOST_GPUS, what="number of GPUs")
    priority = PRIORITIES[cells.word("qos", _CLASSES)]
    if began_s is None:
        return None
    if ended_s is None or ended_s <= began_s:
        cells.refuse("end_s", "is not after start_s", "write the second at which it ended")
        ended_s = began_s + 1
    return TraceRow(
        job_id=cells.text("task_id"),
        submit_s=submit_s,
        gpus=gpus,
        duration_s=ended_s - began_s,
        vc=DEFAULT_TEAM,
        priority=priority,
        end=(phase := cells.word("phase", _PHASES)) or "completed",
        is_cut=phase is None,
    )


def _instant(cells: Cells, column: str) -> float:
    return cells.number(column, least=0, most=MOST_SECONDS, what="second of the trace")


def _refuse_second(cells: Cells, column: str, name: str, first: dict[str, int]) -> None:
    if first.setdefault(name, cells.line) != cells.line and name:
        cells.refuse(
            column, f"{shown(name)} is on line {first[name]} already", "give each job an id of its own"
        )


def _row(cells: Cells) -> TraceRow:
    gpus = cells.whole("gpus", least=1, most=MOST_GPUS, what="number of GPUs")
    return TraceRow(
        job_id=cells.text("job_id"),
        submit_s=cells.number("submit_s", least=0, most=MOST_SECONDS, what="second of submission"),
        gpus=gpus,
        duration_s=_seconds(cells, "duration_s"),
        vc=cells.text("vc"),
        user=cells.given("user", cells.text),
        name=cells.given("name", cells.text),
        instance_type=cells.given("instance_type", lambda column: _instance_type(cells, column)),
        requested_s=cells.given("requested_s", lambda column: _seconds(cells, column)),
        priority=cells.given(
            "priority", lambda column: cells.whole(column, least=0, most=MAX_PRIORITY, what="priority")
        ),
        checkpoint_every_s=cells.given("checkpoint_every_s", lambda column: _interval(cells, column)),
        end=cells.given("end", lambda column: cells.word(column, END)),
    )


def _seconds(cells: Cells, column: str) -> float:
    """Read seconds, more than 0."""
    value = cells.number(column, least=0, most=MOST_SECONDS, what="number of seconds")
    if value == 0:
        cells.refuse(column, "is not more than 0", "leave out jobs that never ran")
    return value


def _interval(cells: Cells, column: str) -> float:
    return cells.number(column, least=0, most=MOST_SECONDS, what="number of seconds")


def _instance_type(cells: Cells, column: str) -> str:
    text = cells.text(column)
    if not gpus_of(text):
        why = "is not an instance type that is known here" if gpus_of(text) is None else "has no GPUs"
        cells.refuse(
            column, f"{shown(text)} {why}", "write one as SageMaker does, e.g. ml.g5.12xlarge, or nothing"
        )
    return text
