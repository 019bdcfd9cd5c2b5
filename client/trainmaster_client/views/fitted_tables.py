"""Chooses which columns of the queue fit on a screen, and cuts their cells to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from trainmaster_client.views.queue_rows import COLUMNS, NOTHING, Column, Row
from trainmaster_client.views.short_names import end_cut, shortened

_LEAST_SHORT = 16
"""Cells in which a short reason may be cut."""
_BY_KEY: Mapping[str, Column] = {column.key: column for column in COLUMNS}
_NAMES = frozenset({"job", "team", "pool"})
_IF_KNOWN = frozenset({"ran", "left", "starts", "starts_range", "reason", "position"})
"""Left out on a screen where no row has a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Columns, and how narrow those may be that give way."""

    keys: tuple[str, ...]
    least: Mapping[str, int]
    """Cells by key; the others are as wide as they need to be."""
    gap: int = 2

    @classmethod
    def of(cls, keys: str, *, gap: int = 2, **least: int) -> "Layout":
        return cls(keys=tuple(keys.split()), least=least, gap=gap)


_WHOLE = "job team pool state instances priority position attempt age ran left starts_range reason"
_LAYOUTS = (
    Layout.of(_WHOLE, reason=20),
    Layout.of(
        "job team pool state instances priority position ran left starts reason",
        job=32,
        team=14,
        pool=14,
        reason=20,
    ),
    Layout.of(
        "job team pool state count priority position ran left starts reason",
        job=24,
        team=10,
        pool=10,
        reason=20,
    ),
    Layout.of("job team pool state count ran left starts reason", gap=1, job=18, team=8, pool=8, reason=8),
    Layout.of("job team pool state count ran left starts reason", gap=1, job=14, team=6, pool=6, reason=8),
    Layout.of("job team pool state count ran left starts", gap=1, job=14, team=6, pool=6),
)
"""The first that fits is taken."""
_LEAST = {"state": len("preempting")}
"""Least width of columns, in every layout."""
_UNLIMITED = 10_000
_GROWTH = (
    *(("team", 9), ("pool", 9), ("job", 24), ("reason", 24), ("job", 40)),
    *(("team", 12), ("pool", 12), ("reason", 44)),
    *((key, _UNLIMITED) for key in ("job", "team", "pool", "reason")),
)
"""Columns that get free cells, in order, each up to a width."""
NARROWEST_TABLE = 72
"""Cells of a screen; in less a job has two lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Cells cut to their widths, ready to be written beside each other."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    lines: tuple[tuple[str, ...], ...]
    gap: int


def fitted_grid(rows: Sequence[Row], width: int) -> Grid | None:
    """Fit the table into ``width`` cells; None if it is too narrow for one."""
    if width < NARROWEST_TABLE:
        return None
    for layout in _LAYOUTS:
        keys = [key for key in layout.keys if key not in _IF_KNOWN or _is_known(key, rows)]
        natural = {key: _widest(key, rows) for key in keys}
        floor = {**natural, **_LEAST, **layout.least}
        least = {key: min(floor[key], natural[key]) for key in keys}
        free = width - sum(least.values()) - layout.gap * (len(keys) - 1)
        if free >= 0:
            return _grid(rows, _grown(least, natural, free), layout.gap)
    return None


def whole_grid(rows: Sequence[Row], *, has_starts: bool) -> Grid:
    """Make a table in which nothing is cut; without ``has_starts`` it has no column for starts."""
    keys = [key for key in _WHOLE.split() if has_starts or key != "starts_range"]
    return _grid(rows, {key: _widest(key, rows) for key in keys}, 2)


def _is_known(key: str, rows: Sequence[Row]) -> bool:
    return any(row.cells[key] not in {"", NOTHING} for row in rows)


def _widest(key: str, rows: Sequence[Row]) -> int:
    return max(map(cell_len, (_BY_KEY[key].heading, *(row.cells[key] for row in rows))))


def _grown(least: Mapping[str, int], natural: Mapping[str, int], free: int) -> dict[str, int]:
    widths = dict(least)
    for key, most in _GROWTH:
        if key in widths:
            growth = min(max(min(natural[key], most) - widths[key], 0), free)
            widths[key] += growth
            free -= growth
    return widths


def _grid(rows: Sequence[Row], widths: Mapping[str, int], gap: int) -> Grid:
    fitted = [_fitted(key, rows, width) for key, width in widths.items()]
    return Grid(
        columns=tuple(_BY_KEY[key] for key in widths),
        widths=tuple(widths.values()),
        lines=tuple(zip(*fitted, strict=True)),
        gap=gap,
    )


def _fitted(key: str, rows: Sequence[Row], width: int) -> list[str]:
    cells = [row.cells[key] for row in rows]
    if key in _NAMES:
        shown = shortened(cells, width)
        return [shown[cell] for cell in cells]
    if key == "reason" and any(cell_len(cell) > width for cell in cells):
        return [_fitted_reason(row, width) for row in rows]
    return [end_cut(cell, width) for cell in cells]


def _fitted_reason(row: Row, width: int) -> str:
    """Show the short reason where not all rows have space for the whole one, or in next to none its code."""
    short = row.cells["short"]
    is_readable = cell_len(short) <= width or width >= _LEAST_SHORT or not row.code
    return end_cut(short if is_readable else row.code, width)
