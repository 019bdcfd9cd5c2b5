"""Defines the columns of a queue row, and chooses which of them fit on a screen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.cells import cell_len

from trainmaster_client.cli.screen import UNLIMITED_COLUMNS
from trainmaster_client.cli.short_names import end_cut, shortened
from trainmaster_client.jobs.instants import length, short_length
from trainmaster_client.jobs.job_views import NO_NAME, JobView
from trainmaster_client.jobs.start_estimates import StartEstimate

NOTHING = "-"
_LONGEST_CODE = 13
"""Cells of the longest code: account-limit."""
_LEAST_MESSAGE = 12
"""Cells of a reason's message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    job: JobView
    now: datetime
    start: StartEstimate | None = None
    """Likely start; None if the job does not wait or nothing is known of it."""

    @property
    def position(self) -> str:
        if self.job.position is not None:
            return str(self.job.position)
        return NOTHING if self.job.ahead_at_least is None else f">{self.job.ahead_at_least}"

    @property
    def compact_instances(self) -> str:
        """Write the number of instances without the type, which mostly follows from the pool."""
        return f"{self.job.instance_count}x{' spot' if self.job.is_spot else ''}"

    @property
    def age(self) -> str:
        since = self.job.submitted_at or self.job.started_at
        return NOTHING if since is None else length(self.now - since)

    @property
    def ran(self) -> timedelta | None:
        """Time the live attempt has trained; an older stack tells only when the job first started."""
        since = self.job.training_since or self.job.started_at
        return None if since is None or not self.job.is_live else max(self.now - since, timedelta())

    @property
    def left(self) -> timedelta | None:
        """Longest time until the job's instances are certain to be free; None if not known."""
        return None if self.job.ends_by is None else max(self.job.ends_by - self.now, timedelta())

    @property
    def starts(self) -> str:
        return NOTHING if self.start is None else _until(self.start.p50, self.now)

    @property
    def starts_with_p90(self) -> str:
        if self.start is None:
            return NOTHING
        return f"{self.starts} ({_until(self.start.p90, self.now)})"


def _until(at: datetime, now: datetime) -> str:
    return short_length(at - now) if at > now else "now"


def _span(value: timedelta | None) -> str:
    return NOTHING if value is None else short_length(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    heading: str
    cell: Callable[[QueueRow], str]
    to_the_right: bool = False


JOB = Column(heading="JOB", cell=lambda row: row.job.name or NO_NAME)
TEAM = Column(heading="TEAM", cell=lambda row: row.job.team)
POOL = Column(heading="POOL", cell=lambda row: row.job.pool)
STATE = Column(heading="STATE", cell=lambda row: row.job.state)
INSTANCES = Column(heading="INSTANCES", cell=lambda row: row.job.instances)
COUNT = Column(heading="N", cell=lambda row: row.compact_instances)
PRIORITY = Column(heading="PRIO", cell=lambda row: str(row.job.priority), to_the_right=True)
POSITION = Column(heading="POS", cell=lambda row: row.position, to_the_right=True)
ATTEMPT = Column(
    heading="ATTEMPT",
    cell=lambda row: NOTHING if row.job.attempt is None else str(row.job.attempt),
    to_the_right=True,
)
AGE = Column(heading="AGE", cell=lambda row: row.age, to_the_right=True)
RAN = Column(heading="RAN", cell=lambda row: _span(row.ran), to_the_right=True)
LEFT = Column(heading="LEFT", cell=lambda row: _span(row.left), to_the_right=True)
STARTS = Column(heading="STARTS", cell=lambda row: row.starts, to_the_right=True)
STARTS_WITH_P90 = Column(heading="STARTS", cell=lambda row: row.starts_with_p90, to_the_right=True)
REASON = Column(heading="REASON", cell=lambda row: row.job.why)

_NAMES = (JOB, TEAM, POOL)
_IF_KNOWN = frozenset({RAN.heading, LEFT.heading, STARTS.heading, REASON.heading, POSITION.heading})
"""Left out on a screen where no row has a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Columns, and how narrow those may be that give way."""

    columns: tuple[Column, ...]
    least: dict[str, int]
    """Cells by heading; the others are as wide as they need to be."""
    gap: int = 2


_LEAST = {STATE.heading: len("preempting")}
"""Least width of columns, in every layout."""
_ALL = (
    JOB,
    TEAM,
    POOL,
    STATE,
    INSTANCES,
    PRIORITY,
    POSITION,
    ATTEMPT,
    AGE,
    RAN,
    LEFT,
    STARTS_WITH_P90,
    REASON,
)
WIDE = Layout(columns=_ALL, least={})
"""Layout in which no column is cut."""
_LAYOUTS = (
    Layout(columns=_ALL, least={"REASON": 20}),
    Layout(
        columns=(JOB, TEAM, POOL, STATE, INSTANCES, PRIORITY, POSITION, RAN, LEFT, STARTS, REASON),
        least={"JOB": 32, "TEAM": 14, "POOL": 14, "REASON": 20},
    ),
    Layout(
        columns=(JOB, TEAM, POOL, STATE, COUNT, PRIORITY, POSITION, RAN, LEFT, STARTS, REASON),
        least={"JOB": 24, "TEAM": 10, "POOL": 10, "REASON": 20},
    ),
    Layout(
        columns=(JOB, TEAM, POOL, STATE, COUNT, RAN, LEFT, STARTS, REASON),
        least={"JOB": 18, "TEAM": 8, "POOL": 8, "REASON": 8},
        gap=1,
    ),
    Layout(
        columns=(JOB, TEAM, POOL, STATE, COUNT, RAN, LEFT, STARTS, REASON),
        least={"JOB": 14, "TEAM": 6, "POOL": 6, "REASON": 8},
        gap=1,
    ),
    Layout(
        columns=(JOB, TEAM, POOL, STATE, COUNT, RAN, LEFT, STARTS),
        least={"JOB": 14, "TEAM": 6, "POOL": 6},
        gap=1,
    ),
)
"""The first that fits is taken."""


_GROWTH = (
    *((TEAM.heading, 9), (POOL.heading, 9), (JOB.heading, 40)),
    *((TEAM.heading, 12), (POOL.heading, 12), (REASON.heading, 44)),
    *((column.heading, UNLIMITED_COLUMNS) for column in (*_NAMES, REASON)),
)
"""Columns that get free cells, in order, each up to a width."""

NARROWEST_TABLE = 72
"""Cells of a screen; in less a job has two lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Cells as they are printed: ``lines`` has a tuple a row, in the order of ``columns``."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    lines: tuple[tuple[str, ...], ...]
    gap: int


def fitted_grid(rows: Sequence[QueueRow], width: int) -> Grid | None:
    """Fit the rows into a table of ``width`` cells; None if that is too narrow for any table."""
    if width < NARROWEST_TABLE:
        return None
    code = max((cell_len(_code(row.job.why)) for row in rows), default=0)
    for layout in _LAYOUTS:
        cells = _cells(rows, _known(layout, rows))
        natural = {column.heading: _widest(column, cells[column.heading]) for column in _known(layout, rows)}
        floor = _LEAST | layout.least | {REASON.heading: max(layout.least.get(REASON.heading, 0), code)}
        least = {
            name: min(floor.get(name, width_needed), width_needed) for name, width_needed in natural.items()
        }
        free = width - sum(least.values()) - layout.gap * (len(natural) - 1)
        if free >= 0:
            widths = _grown(least, natural, free)
            return _grid(_known(layout, rows), cells, widths, layout.gap)
    return None


def whole_grid(rows: Sequence[QueueRow], *, has_starts: bool) -> Grid:
    """Make a table in which nothing is cut.

    Without ``has_starts`` the stack estimates no starts, so there is no column for them.
    """
    columns = tuple(column for column in WIDE.columns if has_starts or column is not STARTS_WITH_P90)
    cells = _cells(rows, columns)
    natural = {column.heading: _widest(column, cells[column.heading]) for column in columns}
    return _grid(columns, cells, natural, WIDE.gap)


def _known(layout: Layout, rows: Sequence[QueueRow]) -> tuple[Column, ...]:
    return tuple(
        column
        for column in layout.columns
        if column.heading not in _IF_KNOWN or any(column.cell(row) not in {"", NOTHING} for row in rows)
    )


def _cells(rows: Sequence[QueueRow], columns: Sequence[Column]) -> dict[str, list[str]]:
    return {column.heading: [column.cell(row) for row in rows] for column in columns}


def _widest(column: Column, cells: Sequence[str]) -> int:
    return max(map(cell_len, (column.heading, *cells)))


def _grown(least: Mapping[str, int], natural: Mapping[str, int], free: int) -> dict[str, int]:
    widths = dict(least)
    for heading, most in _GROWTH:
        if heading in widths:
            growth = min(max(min(natural[heading], most) - widths[heading], 0), free)
            widths[heading] += growth
            free -= growth
    return widths


def _grid(
    columns: Sequence[Column], cells: Mapping[str, Sequence[str]], widths: Mapping[str, int], gap: int
) -> Grid:
    fitted = {
        column.heading: _fitted(column, cells[column.heading], widths[column.heading]) for column in columns
    }
    return Grid(
        columns=tuple(columns),
        widths=tuple(widths[column.heading] for column in columns),
        lines=tuple(zip(*fitted.values(), strict=True)),
        gap=gap,
    )


def _fitted(column: Column, cells: Sequence[str], width: int) -> list[str]:
    if column in _NAMES:
        shown = shortened(cells, width)
        return [shown[cell] for cell in cells]
    if column is REASON:
        return [_fitted_reason(cell, width) for cell in cells]
    return [end_cut(cell, width) for cell in cells]


def _code(reason: str) -> str:
    return end_cut(reason.partition(":")[0], _LONGEST_CODE)


def _fitted_reason(reason: str, width: int) -> str:
    """Cut the reason to the width; the code stands alone if next to nothing of the message could be read."""
    code = _code(reason)
    is_readable = width >= cell_len(code) + _LEAST_MESSAGE
    return end_cut(reason if is_readable or cell_len(reason) <= width else code, width)
