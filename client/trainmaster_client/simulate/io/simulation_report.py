"""The report of a simulation: records from which every figure can be recomputed, and checks of them."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.memory.accelerators import gpus

from trainmaster_client.report import Report
from trainmaster_client.simulate.comparison.audits import (
    lost_jobs,
    most_held,
    outside_windows,
    over_capacity,
    wrong_training,
)
from trainmaster_client.simulate.comparison.comparisons import Column, Comparison
from trainmaster_client.simulate.comparison.figure_rows import figure_rows
from trainmaster_client.simulate.comparison.figures import Waits
from trainmaster_client.simulate.comparison.outcomes import seconds, submitted_s
from trainmaster_client.simulate.comparison.seeds import spreads
from trainmaster_client.simulate.engine.past_jobs import PastJob
from trainmaster_client.simulate.engine.replays import ReplayedAttempt, WarmInterval

JOB_FIELDS = (
    "name",
    "team",
    "submit_s",
    "pool",
    "instances",
    "capacity_type",
    "priority",
    "max_runtime_s",
    "trains_for_s",
    "end",
    "saves_every_s",
    "withdrawn_after_s",
    "breaks",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Circumstances that the records themselves do not tell."""

    lead: Sequence[str]
    """Sentences on which capacities were replayed."""
    assumed: Sequence[str]
    not_modelled: Sequence[str]
    prices: PriceTable
    seeds: Sequence[int]
    """Seeds, one for each comparison."""


def add_facts(report: Report, comparisons: Sequence[Comparison], circumstances: Circumstances) -> None:
    first = comparisons[0]
    types = sorted(
        {instance_type for job in first.history.jobs for instance_type in job.instances}
        | {attempt.instance_type for column in first.columns for attempt in column.replay.attempts}
    )
    report.facts |= {
        "source": first.history.source,
        "begins": first.history.begins.isoformat(),
        "columns": [column.label for column in first.columns],
        "base": first.base.label,
        "lead": list(circumstances.lead),
        "not_known": list(first.history.not_known),
        "assumed": list(circumstances.assumed),
        "not_modelled": list(circumstances.not_modelled),
        "seeds": list(circumstances.seeds),
        "model": {
            "unit": first.devices.unit,
            "gpus_per_instance": {name: gpus(name) for name in types},
            "usd_per_hour": {name: _float(circumstances.prices.usd_per_hour(name)) for name in types},
            "horizon_s": first.horizon_s,
            "weights": {
                level.label: {"lowest": level.lowest, "highest": level.highest, "weight": level.weight}
                for level in first.classes
            },
        },
        "runs": [
            _run(seed, comparison) for seed, comparison in zip(circumstances.seeds, comparisons, strict=True)
        ],
        "spread": [
            {"id": figure.id, "means": _plain(figure.means), "standard_deviations": _plain(figure.deviations)}
            for figure in spreads(comparisons)
        ],
    }


def add_checks(report: Report, comparisons: Sequence[Comparison], circumstances: Circumstances) -> None:
    """Check every column that was replayed; the recorded one is taken as it is."""
    for seed, comparison in zip(circumstances.seeds, comparisons, strict=True):
        for number, column in enumerate(comparison.columns):
            _check(report, f"seed-{seed}-column-{number}", column)
        jobs = len(comparison.history.jobs)
        counted = [sum(column.fates.values()) for column in comparison.columns]
        report.check(f"seed-{seed}-jobs-of-each-column", expected=[jobs] * len(counted), actual=counted)


def _check(report: Report, where: str, column: Column) -> None:
    names = ("capacity-is-never-exceeded", "no-job-is-lost", "what-completed-trained-its-time")
    if column.is_recorded:
        for name in names:
            report.skip(f"{where}-{name}", reason=f"{column.label}: how it really went", expected=[])
        return
    findings = (
        over_capacity(column.replay),
        lost_jobs(column.outcomes, column.replay),
        wrong_training(column.outcomes),
    )
    for name, broken in zip(names, findings, strict=True):
        report.check(f"{where}-{name}", expected=[], actual=broken)
    if column.replay.plans:
        name = "nothing-trains-on-a-plan-without-instances"
        report.check(f"{where}-{name}", expected=[], actual=outside_windows(column.replay))


def _run(seed: int, comparison: Comparison) -> dict[str, Any]:
    """Return the records of one comparison; tables are CSV, a line each, the columns' names first."""
    return {
        "seed": seed,
        "jobs": _csv(JOB_FIELDS, (_job_row(comparison, job) for job in comparison.history.jobs)),
        "replays": [_replay(column) for column in comparison.columns],
        "figures": [
            {"id": row.id, "label": row.label, "better": row.better, "values": _plain(row.values)}
            for row in figure_rows(comparison)
        ],
        "changes": {
            label: _finite(
                {
                    "shorter": changes.shorter,
                    "longer": changes.longer,
                    "same": changes.same,
                    "started_before_alone": changes.started_before_alone,
                    "started_after_alone": changes.started_after_alone,
                    "refused_before_alone": changes.refused_before_alone,
                    "refused_after_alone": changes.refused_after_alone,
                    "teams": [asdict(team) for team in changes.teams],
                    "winners": [asdict(job) for job in changes.winners],
                    "losers": [asdict(job) for job in changes.losers],
                }
            )
            for label, changes in comparison.changes.items()
        },
    }


def _replay(column: Column) -> dict[str, Any]:
    replay = column.replay
    return {
        "policy": column.label,
        "capacity": {
            pool: {kind: dict(types) for kind, types in capacities.items()}
            for pool, capacities in replay.capacity.items()
        },
        "capacity_steps": {
            pool: [{"since_s": step.since_s, "instances": dict(step.instances)} for step in steps]
            for pool, steps in replay.steps.items()
        },
        "most_held": [
            {"pool": pool, "capacity_type": kind, "instance_type": name, "instances": held}
            for (pool, kind, name), held in sorted(most_held(replay).items())
        ],
        "attempts": _csv(ReplayedAttempt._fields, replay.attempts),
        "warm": _csv(WarmInterval._fields, replay.warm),
        "refused": dict(replay.refused),
        "passes": replay.passes,
        "planner_cpu_s": round(replay.cpu_s, 3),
        "notes": list(replay.notes),
        "fates": {fate.value: count for fate, count in column.fates.items()},
        **_all_waits(column),
        "figures": _finite(asdict(column.figures)),
        "cost_usd": {
            "jobs": round(column.bill.jobs_usd, 2),
            "lost": round(column.bill.lost_usd, 2),
            "startup": round(column.bill.startup_usd, 2),
            "idle_warm": round(column.bill.idle_warm_usd, 2),
            "unpriced": list(column.bill.unpriced),
        },
        **_plans(column),
        "preemptions": [
            {"preemptor": taker, "victim": victim, "times": times}
            for (taker, victim), times in sorted(column.preemptions.by_teams.items())
        ],
        "use_by_hour_of_week": _plain(column.use_by_hour),
        "queue": {"bin_s": column.curves.bin_s, "jobs": _plain(column.curves.queue)},
    }


def _all_waits(column: Column) -> dict[str, Any]:
    return {
        "waits": _waits(column.waits),
        "waits_by_team": {team: _waits(waits) for team, waits in column.waits_by_team.items()},
        "waits_by_class": {label: _waits(waits) for label, waits in column.waits_by_class.items()},
    }


def _job_row(comparison: Comparison, job: PastJob) -> Sequence[Any]:
    return (
        job.name,
        job.team,
        submitted_s(comparison.history, job),
        job.pool or "",
        "+".join(f"{name}={count}" for name, count in sorted(job.instances.items())),
        job.capacity_type,
        job.priority,
        seconds(job.max_runtime),
        seconds(job.trains_for),
        job.end,
        "" if job.saves_every is None else seconds(job.saves_every),
        "" if job.withdrawn_after is None else seconds(job.withdrawn_after),
        "+".join(f"{seconds(broken.after)}:{broken.code}" for broken in job.breaks),
    )


def _csv(fields: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return lines of CSV; ``csv.DictReader`` takes the list as it is."""
    lines: list[str] = []
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="")
    for row in (fields, *rows):
        writer.writerow(row)
        lines.append(text.getvalue())
        text.seek(0)
        text.truncate()
    return lines


def _plans(column: Column) -> dict[str, Any]:
    """Return training plans and what became of their hours; no new key where there are none."""
    bill, plans = column.bill.plans, column.replay.plans
    if bill is None:
        return {}
    listed = [plan._asdict() | {"windows": [window._asdict() for window in plan.windows]} for plan in plans]
    return {"plans": listed, "plans_use": _finite(asdict(bill))}


def _waits(waits: Waits) -> Any:  # noqa: ANN401  JSON
    return _finite(asdict(waits))


def _finite(value: Any) -> Any:  # noqa: ANN401  JSON has no infinity: a wait without end is null beside never_started
    if isinstance(value, dict):
        return {key: _finite(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(child) for child in value]
    if isinstance(value, float):
        return None if math.isinf(value) else round(value, 4)
    return value


def _plain(values: Iterable[float | None]) -> list[float | None]:
    return [_finite(value) for value in values]


def _float(value: Any) -> float | None:  # noqa: ANN401  a Decimal or None
    return None if value is None else float(value)
