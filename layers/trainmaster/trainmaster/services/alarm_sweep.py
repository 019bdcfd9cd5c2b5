"""Catch up on missed alarms, stop idle and underused jobs, and delete alarms without a job."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring import alarm_reactions
from trainmaster.core.monitoring.alarms import (
    AlarmKind,
    AlarmReading,
    AlarmState,
    Watched,
    alarm_name,
    alarms_of,
    full_name,
    may_be_of_another_stack,
    relative_name,
    wanted_of,
    watched_by,
)
from trainmaster.core.outbox.derive import deletion
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.policy import UNMANAGED
from trainmaster.core.policy.governance import Governing, Reaction, Watch
from trainmaster.ports import AlarmReader, Clock, JobReader, JobStore
from trainmaster.services.alarm_events import IdleWatch
from trainmaster.services.deadline import Deadline

Readings = Mapping[str, AlarmReading]
"""Alarms by name; empty if they could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmSweep:
    """Runs once a minute; every part is valid by itself, and repeating it changes nothing more."""

    alarms: AlarmReader
    idle_watch: IdleWatch
    reader: JobReader
    store: JobStore
    clock: Clock
    stack: str

    def read(self) -> Readings:
        """Read every alarm of the stack, before the live jobs: new alarms would look orphaned otherwise."""
        return self.alarms.readings(full_name(self.stack, ""))

    def run(
        self, readings: Readings, live: Sequence[RunningJob], governing: Governing, deadline: Deadline
    ) -> Iterator[Exception]:
        """Do what is due; yield what failed, for the next run."""
        for entry in live:
            if deadline.is_over:
                return
            try:
                self._look(entry, readings, governing)
            except Exception as error:  # noqa: BLE001  one job must not keep the others waiting
                yield error
        try:
            self._sweep(readings, live, governing.watch)
        except Exception as error:  # noqa: BLE001  nor the rest of the run
            yield error

    def _look(self, entry: RunningJob, readings: Readings, governing: Governing) -> None:
        if entry.state is not JobState.RUNNING:
            return
        watch = governing.watch
        for kind in AlarmKind:
            reading = readings.get(alarm_name(self.stack, kind, entry.training_job_name))
            if _is_news(entry, kind, reading, watch):
                self.idle_watch.look(Watched(kind=kind, training_job_name=entry.training_job_name))
        for kind in alarm_reactions.stop_due_for(entry.watch, now=self.clock()):
            self._stop(entry, kind, governing)
        if self._lacks(entry, readings, watch):
            self._make_again(entry)

    def _stop(self, entry: RunningJob, kind: AlarmKind, governing: Governing) -> None:
        """Stop a job after reading its alarm again, as an OK may have been lost."""
        job = self.reader.job(entry.name)
        if job is None:
            return
        name = alarm_name(self.stack, kind, entry.training_job_name)
        after = alarm_reactions.stop_for(job, kind, self.alarms.reading(name), governing, now=self.clock())
        if after is not None:
            self._commit(job, after)

    def _lacks(self, entry: RunningJob, readings: Readings, watch: Watch) -> str | None:
        """Return an alarm that was made and is gone, after one more read: it may be newer than the list."""
        names = self._made(entry, watch)
        return next(
            (name for name in names if name not in readings and self.alarms.reading(name) is None), None
        )

    def _made(self, entry: RunningJob, watch: Watch) -> tuple[str, ...]:
        """Return the names of all its alarms, if they are known to be made as the policy requires."""
        wanted = wanted_of(entry.vector, watch)
        if entry.watch.monitored != wanted.digest:
            return ()
        alarms = alarms_of(entry.training_job_name, wanted, watch, stack=self.stack)
        return tuple(alarm.name for alarm in alarms)

    def _make_again(self, entry: RunningJob) -> None:
        job = self.reader.job(entry.name)
        if job is not None and job.ver == entry.ver:
            self._commit(job, alarm_reactions.alarms_lost(job))

    def _commit(self, before: Job, after: Job) -> None:
        self.store.commit([Change(before=before, after=after)], at=self.clock())

    def _sweep(self, readings: Readings, live: Sequence[RunningJob], watch: Watch) -> None:
        """Leave superfluous alarms to ``schedule``, as this function may only read alarms."""
        attempts = {entry.training_job_name: entry for entry in live}
        superfluous: dict[str, list[str]] = {}
        for name in sorted(readings, key=lambda full: ("." in full, full)):
            watched = watched_by(name, stack=self.stack)
            if watched is None:
                continue
            entry = attempts.get(watched.training_job_name)
            is_wanted = self._is_wanted(name, entry, watch) if entry else not self._is_ours(watched)
            if not is_wanted:
                names = superfluous.setdefault(watched.training_job_name, [])
                names.append(relative_name(name, stack=self.stack))
        if superfluous:
            messages = [deletion(job, alarms, at=self.clock()) for job, alarms in superfluous.items()]
            self.store.leave(UNMANAGED, messages)

    def _is_wanted(self, name: str, entry: RunningJob, watch: Watch) -> bool:
        """Tell whether an alarm is needed.

        One of an earlier policy may be left by a pass that died before it noted that it had made it.
        """
        wanted = wanted_of(entry.vector, watch)
        if entry.state is not JobState.RUNNING or entry.watch.monitored != wanted.digest:
            return True
        return name in self._made(entry, watch)

    def _is_ours(self, watched: Watched) -> bool:
        return (
            not may_be_of_another_stack(watched) or self.reader.alias(watched.training_job_name) is not None
        )


def _is_news(entry: RunningJob, kind: AlarmKind, reading: AlarmReading | None, watch: Watch) -> bool:
    """Tell whether the job's row differs from the list of alarms; only then its alarm is read alone."""
    if reading is not None and reading.state is AlarmState.INSUFFICIENT_DATA:
        return False
    since = reading.since if reading is not None and reading.state is AlarmState.ALARM else None
    warned, section = alarm_reactions.warning_of(entry.watch, kind), alarm_reactions.section_of(kind, watch)
    if since is None or section is None:
        return warned.since is not None
    acts = section.then is not Reaction.NOTIFY
    return warned.since != since or acts != (warned.stop_due is not None)
