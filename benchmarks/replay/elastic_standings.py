"""How a tournament with elastic jobs ends: for all jobs, for the rigid ones alone, and what resizes cost."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from trainmaster_client.report import Report
from trainmaster_client.simulate.engine.replays import RESIZED

from benchmarks.replay.bound import bound_of
from benchmarks.replay.cells import Run, World
from benchmarks.replay.deciders import ELASTIC, LARGEST, LEAST
from benchmarks.replay.figures import STOP_S, figures, flat
from benchmarks.replay.heats import Field, Outcome, world_of
from benchmarks.replay.jobs import HOUR_S, POOLS
from benchmarks.replay.rows import Row
from benchmarks.replay.standings import CLASSES
from benchmarks.tables import aligned, markdown

BOUND = "bound"
MOST_RESIZE_SHARE = 0.01
"""Most of all GPU hours that changes of width may cost: lost training, stops, and start-ups after them."""
MOST_RATIO = 1.0
"""Most of a delay, as a ratio to the same without elastic jobs."""
COLUMNS: Mapping[str, str] = {
    "delay": "all.weighted_delay_h",
    "elastic": "elastic.weighted_delay_h",
    "rigid": "rigid.weighted_delay_h",
    **{f"rigid {klass}": f"rigid.mean_delay_h.{klass}" for klass in CLASSES},
    "resizes": "resizes",
    "resizes, %": "resize_percent",
    "waste": "all.waste_gpu_h",
    "goodput": "all.goodput",
}
"""Figure by heading."""

Figures = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticHeat:
    """One window with one load and seed."""

    window: int
    load: float
    seed: int
    elastic_jobs: int
    figures: Mapping[str, Figures]
    """Figures by decider, with the bound."""

    def as_json(self) -> dict[str, Any]:
        rounded = {
            label: {name: round(value, 4) for name, value in row.items()}
            for label, row in self.figures.items()
        }
        where = {"window": self.window, "load": self.load, "seed": self.seed}
        return {**where, "elastic_jobs": self.elastic_jobs, "figures": rounded}


def _heat(field: Field, outcome: Outcome) -> ElasticHeat:
    draw, world = outcome.draw, world_of(field, outcome.draw)
    rigid = [job for job in world.jobs if job.elastic is None]
    bounds = {
        "all.weighted_delay_h": outcome.bound.figures["weighted_delay_h"],
        "rigid.weighted_delay_h": bound_of(rigid, world.capacity).figures["weighted_delay_h"],
        "all.goodput": outcome.bound.figures["goodput"],
    }
    return ElasticHeat(
        window=field.windows[draw.window].number,
        load=draw.load,
        seed=draw.seed,
        elastic_jobs=len(world.jobs) - len(rigid),
        figures={run.algorithm: _figures(run, world) for run in outcome.runs} | {BOUND: bounds},
    )


def _figures(run: Run, world: World) -> Figures:
    parts = {
        "elastic": [job for job in world.jobs if job.elastic is not None],
        "rigid": [job for job in world.jobs if job.elastic is None],
    }
    measured = _named("all", dict(flat(run.figures.as_json())))
    for part, jobs in parts.items():
        names = {job.job_id for job in jobs}
        rows = [row for row in run.rows if row.job_id in names]
        if jobs:
            measured |= _named(part, dict(flat(figures(rows, jobs, world.capacity).as_json())))
    held = sum((row.end_s - row.start_s) * _gpus(row) for row in run.rows)
    resized = sum(row.end == RESIZED for row in run.rows)
    percent = 100 * resize_gpu_s(run.rows) / max(held, 1)
    return measured | {"resizes": resized, "resize_percent": percent, "gpu_h": held / HOUR_S}


def _named(part: str, row: Mapping[str, float]) -> Figures:
    return {f"{part}.{name}": value for name, value in row.items()}


def resize_gpu_s(rows: Sequence[Row]) -> int:
    """Return what changes of width cost, in GPU-seconds: lost training, stops, start-ups after them."""
    after = {(row.job_id, row.attempt): row for row in rows}
    cost = 0
    for row in rows:
        if row.end == RESIZED:
            again = after[row.job_id, row.attempt + 1]
            cost += (row.lost_s + STOP_S) * _gpus(row) + (again.train_s - again.start_s) * _gpus(again)
    return cost


def _gpus(row: Row) -> int:
    return row.instances * POOLS[row.pool].gpus


# ---- what came of it


def means(heats: Sequence[ElasticHeat]) -> dict[str, Figures]:
    """Return the mean of each figure over the heats, by decider."""
    return {
        label: {name: fmean(heat.figures[label][name] for heat in heats) for name in row}
        for label, row in heats[0].figures.items()
    }


def table(rows: Mapping[str, Figures]) -> list[list[str]]:
    return [[label, *(_cell(row, name) for name in COLUMNS.values())] for label, row in rows.items()]


def _cell(row: Figures, name: str) -> str:
    return f"{row[name]:,.3g}" if name in row else "-"


def tell(
    report: Report, field: Field, outcomes: Iterable[Outcome], markdown_path: Path | None
) -> list[ElasticHeat]:
    """Print a table for each load and note its heats; write the tables as Markdown if a file is named."""
    heats = [_heat(field, outcome) for outcome in outcomes]
    report.facts["elastic_heats"] = [heat.as_json() for heat in heats]
    pages: list[str] = []
    for load in sorted({heat.load for heat in heats}):
        mine = [heat for heat in heats if heat.load == load]
        rows = table(means(mine))
        elastic = fmean(heat.elastic_jobs for heat in mine)
        head = f"Load {load}: {len(mine)} replays a decider, {elastic:.0f} elastic jobs in each (mean)."
        print("\n".join([head, "", *aligned([["decider", *COLUMNS], *rows], named=True)]), end="\n\n")
        lines = markdown(["decider", *COLUMNS], [[f"`{label}`", *cells] for label, *cells in rows])
        pages.append("\n".join([head, "", *lines]))
    if markdown_path is not None:
        markdown_path.parent.mkdir(parents=True, exist_ok=True)
        markdown_path.write_text("\n\n".join(pages) + "\n", encoding="utf-8")
    return heats


def check(report: Report, heats: Sequence[ElasticHeat]) -> None:
    """Check what elastic jobs have to be worth, and that those who set no tag pay nothing for them."""
    for load in sorted({heat.load for heat in heats}):
        rows = means([heat for heat in heats if heat.load == load])
        percent = rows[ELASTIC]["resize_percent"]
        most = 100 * MOST_RESIZE_SHARE
        report.check(
            f"load-{load}-resizes-percent-of-gpu-hours",
            expected=f"<= {most:g}",
            actual=round(percent, 3),
            ok=percent <= most,
        )
        for rigid in (LARGEST, LEAST):
            _check_ratio(report, f"load-{load}-delay-to-{rigid}", rows, "all.weighted_delay_h", rigid)
        for klass in CLASSES:
            name = f"load-{load}-rigid-{klass}-to-{LARGEST}"
            _check_ratio(report, name, rows, f"rigid.mean_delay_h.{klass}", LARGEST)


def _check_ratio(report: Report, name: str, rows: Mapping[str, Figures], figure: str, rigid: str) -> None:
    base = rows[rigid][figure]
    ratio = rows[ELASTIC][figure] / base if base else MOST_RATIO
    report.check(name, expected=f"<= {MOST_RATIO}", actual=round(ratio, 4), ok=ratio <= MOST_RATIO)
