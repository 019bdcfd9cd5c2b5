"""The standings as tables: of at most 100 columns for a terminal, or Markdown for a page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.replay.standings import CLASSES, DAY_DELAY, Heat, Standing
from benchmarks.tables import markdown

LABEL_WIDTH = 20
Cell = Callable[[Standing], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    title: str
    columns: Mapping[str, str]
    """Figure by heading."""
    cell: Cell


def ratio(standing: Standing) -> str:
    """Write the ratio with its standard deviation over the heats."""
    if standing.ratio is None:
        return "-"
    return _short(standing.ratio) + ("" if standing.spread is None else f" ±{_short(standing.spread)}")


def ranged(standing: Standing) -> str:
    """Write the ratio with its least and most of the seeds."""
    if standing.ratio is None or standing.least is None or standing.most is None:
        return "-"
    return f"{_short(standing.ratio)} ({_short(standing.least)} to {_short(standing.most)})"


def closed(standing: Standing) -> str:
    return "-" if standing.closed is None else f"{standing.closed:.0%}"


def _short(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"  # noqa: PLR2004  width of a cell


def _mean(standing: Standing) -> str:
    return f"{standing.mean:,.2f}" if abs(standing.mean) < 100 else f"{standing.mean:,.0f}"  # noqa: PLR2004  width


DELAYS = {
    "delay": "weighted_delay_h",
    **{klass: f"mean_delay_h.{klass}" for klass in CLASSES},
    "longest": "longest_delay_h",
}
MEDIANS = {f"p50 {klass}": f"p50_delay_h.{klass}" for klass in CLASSES}
HIGHEST = {f"p99 {klass}": f"p99_delay_h.{klass}" for klass in CLASSES}
WORK = {
    "waste": "waste_gpu_h",
    "start-up": "startup_gpu_h",
    "goodput": "goodput",
    "stops": "preemptions",
}
TABLES = (
    Table(title="Mean delays, ratio to the better plain queue", columns=DELAYS, cell=ratio),
    Table(title="Medians of delays, ratio to the better plain queue", columns=MEDIANS, cell=ratio),
    Table(
        title="p99 of delays, ratio to the better plain queue (least to most of the seeds)",
        columns=HIGHEST,
        cell=ranged,
    ),
    Table(
        title="Weighted delay by requested times (least to most of the seeds)",
        columns={"drawn": DELAYS["delay"], "24 h for all": DAY_DELAY},
        cell=ranged,
    ),
    Table(title="What it costs, ratio to the better plain queue", columns=WORK, cell=ratio),
    Table(
        title="Share of the gap between the better plain queue and the bound that is closed",
        columns={
            **{name: DELAYS[name] for name in ("delay", "longest")},
            "p99 high": "p99_delay_h.high",
            **{name: WORK[name] for name in ("waste", "start-up", "goodput")},
        },
        cell=closed,
    ),
    Table(
        title="As it is: hours, GPU-hours, a share of all GPU time, and a count (means)",
        columns={
            "delay": "weighted_delay_h",
            "p99 high": "p99_delay_h.high",
            "longest": "longest_delay_h",
            "waste": "waste_gpu_h",
            "start-up": "startup_gpu_h",
            "idle warm": "idle_warm_gpu_h",
            "goodput": "goodput",
            "stops": "preemptions",
        },
        cell=_mean,
    ),
)


def text(table: Table, standings: Mapping[str, Mapping[str, Standing]]) -> str:
    rows = {label: _cells(table, row) for label, row in standings.items()}
    widest = max(len(cell) for row in (list(table.columns), *rows.values()) for cell in row)
    lines = [
        f"{label:{LABEL_WIDTH}}" + "".join(f"{cell:>{widest + 1}}" for cell in row)
        for label, row in (("", list(table.columns)), *rows.items())
    ]
    return "\n".join([table.title, *lines])


def _cells(table: Table, row: Mapping[str, Standing]) -> list[str]:
    return [table.cell(row[figure]) if figure in row else "-" for figure in table.columns.values()]


def page(table: Table, standings: Mapping[str, Mapping[str, Standing]]) -> str:
    """Return a table as Markdown."""
    rows = [[f"`{label}`", *_cells(table, row)] for label, row in standings.items()]
    return "\n".join([f"**{table.title}**", "", *markdown(["decider", *table.columns], rows)])


def texts(standings: Mapping[str, Mapping[str, Standing]]) -> list[str]:
    return [text(table, standings) for table in TABLES]


def pages(standings: Mapping[str, Mapping[str, Standing]]) -> list[str]:
    return [page(table, standings) for table in TABLES]


def bounds_line(heats: Sequence[Heat]) -> str:
    delay = fmean(heat.bound["weighted_delay_h"] for heat in heats)
    goodput = fmean(heat.bound["goodput"] for heat in heats)
    return (
        f"No decider can have a weighted delay below {delay:.3f} h or a goodput above {goodput:.4f} (means)."
    )
