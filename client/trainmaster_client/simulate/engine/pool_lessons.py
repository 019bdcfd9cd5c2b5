"""Keeps what a replayed pool learns: how long jobs train, and how soon they follow each other."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

from trainmaster.core.durations.learned import Known, likely_lengths
from trainmaster.core.durations.learned_rows import LearnedRow
from trainmaster.core.durations.traits import Traits, learned_key, notes_places
from trainmaster.core.forecast.run_times import Run, RunTimes
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import lane_text
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.run_time import counted_time
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.unserved_attempts import start_lesson
from trainmaster.core.lifecycle.warm_lessons import warm_lesson
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.core.planning.start_records import StartRecords
from trainmaster.core.planning.warm_history import WarmHistory

from trainmaster_client.simulate.engine.waiting_lanes import LaneKey


@dataclass(slots=True, kw_only=True)
class PoolLessons:
    run_times: dict[LaneKey, RunTimes] = field(default_factory=dict)
    learned: dict[tuple[str, str], LearnedRow] = field(default_factory=dict)
    """Learned run times by ``learned_key``."""
    warm_histories: dict[str, WarmHistory] = field(default_factory=dict)
    """Records by warm key."""
    start_records: StartRecords = field(default_factory=StartRecords)

    def of_warm(self, pools: Iterable[WarmPool]) -> dict[str, WarmHistory]:
        """Return the records of the keys that instances are kept warm for."""
        keys = {pool.warm_key for pool in pools}
        return {key: self.warm_histories[key] for key in keys if key in self.warm_histories}

    def note_warm(self, change: Change, *, now: datetime) -> None:
        """Learn from a start or an end how soon jobs of its warm key follow each other."""
        lesson = warm_lesson(change, at=now)
        if lesson is not None:
            known = self.warm_histories.get(lesson.key, WarmHistory())
            self.warm_histories[lesson.key] = known.after(lesson)

    def note_start(self, change: Change, *, now: datetime) -> None:
        """Learn from a start how likely AWS is to have instances of its types."""
        self.start_records = self.start_records.after(start_lesson(change, at=now))

    def known(self, traits: Traits, keys: Sequence[str], *, now: datetime) -> Known:
        """Estimate how long a job of these traits, which counts in these histograms, is going to train."""
        times = self.run_times.get((traits.team, traits.lane))
        learned_rows = (self.learned.get(learned_key(traits.team, key)) for key in keys)
        rows = [row.read(now) if row else None for row in learned_rows]
        return Known(
            predicted=None if times is None else times.predicted,
            likely=likely_lengths(rows, limit=traits.limit),
        )

    def note_run_time(self, change: Change, attempt: Attempt, *, now: datetime) -> None:
        """Learn from a completed job how long later ones of its lane train."""
        spec = change.after.spec
        if change.after.state is not JobState.COMPLETED or attempt.training_since is None:
            return
        last = counted_time(spec, attempt, (attempt.ended_at or now) - attempt.training_since)
        trained = change.before.checkpointed + last
        trained = timedelta(seconds=int(trained.total_seconds()))  # as the table keeps it
        run = Run(trained=trained, limit=spec.max_runtime, priority=change.after.priority, ended_at=now)
        lane = (spec.team, lane_text(change.after.shapes, spec.choice))
        times = self.run_times.get(lane)
        self.run_times[lane] = times.after(run) if times else RunTimes.of(run)
        place = None if spec.likely is None else spec.likely.place_of(trained)
        for key in spec.learned_in or ():
            kind = learned_key(spec.team, key)
            row = self.learned.get(kind, LearnedRow(newest=now))
            self.learned[kind] = (
                row.after_placed(trained, place, ended_at=now)
                if notes_places(key)
                else row.after(trained, ended_at=now)
            )

    def fork(self) -> Self:
        """Copy it to go its own way; values in it never change, so only containers are copied."""
        return type(self)(
            run_times=dict(self.run_times),
            learned=dict(self.learned),
            warm_histories=dict(self.warm_histories),
            start_records=self.start_records,
        )
