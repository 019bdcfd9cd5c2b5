"""One history under several policies, side by side."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainmaster.core.costs.prices import PriceTable

from trainmaster_client.simulate.comparison.bills import Bill, bill_of
from trainmaster_client.simulate.comparison.changes import Changes, changes_between
from trainmaster_client.simulate.comparison.devices import Devices
from trainmaster_client.simulate.comparison.figures import (
    Basis,
    Figures,
    Waits,
    capacity_devices,
    counted,
    figures_of,
    plan_devices,
    waits_of,
)
from trainmaster_client.simulate.comparison.hours import Interval, bin_seconds, binned, by_hour_of_week
from trainmaster_client.simulate.comparison.outcomes import Fate, JobOutcome, last_submission_s, outcomes_of
from trainmaster_client.simulate.comparison.preemptions import Preemptions, preemptions_of
from trainmaster_client.simulate.comparison.priority_classes import PriorityClass, class_of, classes_of
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.recorded import RECORDED
from trainmaster_client.simulate.engine.replays import Replay


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Means by ``bin_s`` from the history's beginning."""

    bin_s: int
    queue: Sequence[float]
    """Jobs that wait."""
    used: Sequence[float]
    """Devices that attempts hold."""
    used_by_team: Mapping[str, Sequence[float]]
    capacity: float
    """Number of devices; 0 if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The figures of one policy."""

    replay: Replay
    outcomes: Mapping[str, JobOutcome] = field(repr=False)
    fates: Mapping[Fate, int]
    figures: Figures
    waits: Waits
    waits_by_team: Mapping[str, Waits]
    waits_by_class: Mapping[str, Waits]
    """Waits by priority class, from the highest class to the lowest."""
    bill: Bill
    preemptions: Preemptions
    curves: Curves = field(repr=False)
    use_by_hour: Sequence[float | None] = field(repr=False)
    """Share of the capacity, without plans, in the 168 hours of the week from Monday 00:00 UTC; None: no such
    hour."""
    refusals: Mapping[str, int]
    """Number of refused jobs by reason."""

    @property
    def label(self) -> str:
        return self.replay.policy

    @property
    def is_recorded(self) -> bool:
        return self.label == RECORDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    history: History = field(repr=False)
    devices: Devices
    classes: Sequence[PriorityClass]
    columns: Sequence[Column]
    horizon_s: int
    """The last submission: shares of capacity are counted up to here."""
    length_s: int
    """Last end in any column: curves reach this far."""
    base: Column
    """Column that the others are compared with."""
    changes: Mapping[str, Changes]
    """Changes from the base to each other column, by its label."""

    @property
    def others(self) -> list[Column]:
        return [column for column in self.columns if column is not self.base]

    @property
    def last(self) -> Column:
        """Last column: the one that the question was about."""
        return self.columns[-1]


def compare(history: History, replays: Sequence[Replay], *, prices: PriceTable | None = None) -> Comparison:
    """Compare two or more replays, in the order of the columns.

    Args:
        history: All replays are of it.
        replays: The columns.
        prices: Of all columns; without them those that the product ships.
    """
    devices = Devices.of_types({instance_type for job in history.jobs for instance_type in job.instances})
    classes = classes_of(job.priority for job in history.jobs)
    horizon_s = last_submission_s(history)
    ends = (attempt.end_s for replay in replays for attempt in replay.attempts)
    measure = _Measure(
        history=history,
        basis=Basis(devices=devices, classes=classes, horizon_s=horizon_s),
        prices=prices or PriceTable(),
        length_s=max(horizon_s, 1, *ends),
    )
    columns = [measure.column(replay) for replay in replays]
    base = next((column for column in columns[:-1] if not column.is_recorded), columns[0])
    return Comparison(
        history=history,
        devices=devices,
        classes=classes,
        columns=columns,
        horizon_s=horizon_s,
        length_s=measure.length_s,
        base=base,
        changes={
            column.label: changes_between(base.outcomes, column.outcomes)
            for column in columns
            if column is not base
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    """The same for each column."""

    history: History
    basis: Basis
    prices: PriceTable
    length_s: int

    def column(self, replay: Replay) -> Column:
        outcomes = outcomes_of(self.history, replay)
        return Column(
            replay=replay,
            outcomes=outcomes,
            fates=counted(outcomes.values()),
            figures=figures_of(replay, outcomes, self.basis),
            waits=waits_of(outcomes.values()),
            waits_by_team=self._by_team(outcomes.values()),
            waits_by_class=self._by_class(outcomes.values()),
            bill=bill_of(replay, outcomes, self.prices),
            preemptions=preemptions_of(replay.attempts, outcomes, self.basis.devices),
            curves=self._curves(replay, outcomes),
            use_by_hour=self._use_by_hour(replay),
            refusals=_refusals(replay),
        )

    def _by_team(self, outcomes: Iterable[JobOutcome]) -> dict[str, Waits]:
        groups: dict[str, list[JobOutcome]] = defaultdict(list)
        for outcome in outcomes:
            groups[outcome.job.team].append(outcome)
        return {team: waits_of(groups[team]) for team in sorted(groups)}

    def _by_class(self, outcomes: Iterable[JobOutcome]) -> dict[str, Waits]:
        groups: dict[str, list[JobOutcome]] = {
            priority_class.label: [] for priority_class in self.basis.classes
        }
        for outcome in outcomes:
            groups[class_of(outcome.job.priority, self.basis.classes).label].append(outcome)
        return {label: waits_of(group) for label, group in groups.items()}

    def _curves(self, replay: Replay, outcomes: Mapping[str, JobOutcome]) -> Curves:
        bin_s = bin_seconds(self.length_s)
        waiting = [
            (since, until, 1.0)
            for outcome in outcomes.values()
            for since, until in outcome.waiting_intervals(self.length_s)
        ]
        by_team: dict[str, list[Interval]] = defaultdict(list)
        for attempt in replay.attempts:
            held = (attempt.start_s, attempt.end_s, float(self.basis.devices.of(attempt)))
            by_team[outcomes[attempt.job].job.team].append(held)
        used = {team: binned(found, bin_s=bin_s, length_s=self.length_s) for team, found in by_team.items()}
        return Curves(
            bin_s=bin_s,
            queue=binned(waiting, bin_s=bin_s, length_s=self.length_s),
            used=[sum(values) for values in zip(*used.values(), strict=True)],
            used_by_team=used,
            capacity=float(
                capacity_devices(replay, self.basis.devices) + plan_devices(replay, self.basis.devices)
            ),
        )

    def _use_by_hour(self, replay: Replay) -> list[float | None]:
        there = capacity_devices(replay, self.basis.devices)
        held = [
            (attempt.start_s, attempt.end_s, float(self.basis.devices.of(attempt)))
            for attempt in replay.attempts
            if not attempt.is_on_plan
        ]
        means = by_hour_of_week(held, begins=self.history.begins, length_s=self.basis.horizon_s)
        return [None if mean is None or not there else mean / there for mean in means]


def _refusals(replay: Replay) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for reason in replay.refused.values():
        counts[reason] += 1
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))
