"""SageMaker's side of one pool: attempts start, train, are interrupted and stopped, as ``runs`` has it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self

from trainmaster.core.jobs.instances import Vector
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.observations import Observation, TrainingInterval
from trainmaster.core.lifecycle.settlement import WARM_AVAILABLE

from trainmaster_client.simulate.engine.event_queue import EventQueue, What
from trainmaster_client.simulate.engine.past_jobs import INTERRUPTED, STOPPING, AccountBounds, Pace, PastJob
from trainmaster_client.simulate.engine.replays import RESIZED, ReplayedAttempt
from trainmaster_client.simulate.engine.runs import (
    SECOND,
    Course,
    Finish,
    Run,
    as_it_was,
    exact_s,
    finish_of,
    in_s,
    replaced_s,
    settled,
    startup_s,
    stop_s,
)
from trainmaster_client.simulate.engine.status_news import (
    launch_s,
    restart_news,
    startup_news,
    stop_news,
    upload_s,
)

ENDS_WITH_LOSS = frozenset({"failed", "preempted", RESIZED, INTERRUPTED})
"""Ends with which training that no checkpoint has is lost; with others the job had come to its end."""
AFTER_STOP = frozenset({What.STOPPING, What.STOPPED})
"""The only news of an attempt that is being stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The parts of CreateTrainingJob that count here."""

    number: int
    vector: Vector
    max_runtime: timedelta
    max_wait: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An attempt whose instances are free."""

    run: Run
    lost_s: float
    """Training that no checkpoint has."""


@dataclass(slots=True, kw_only=True)
class SimulatedSageMaker:
    pool: str
    begins: datetime
    pace: Pace
    event_queue: EventQueue
    account: AccountBounds = field(default_factory=AccountBounds)
    runs: dict[str, Run] = field(default_factory=dict)
    """Live attempts, by job."""
    courses: dict[str, Course] = field(default_factory=dict)
    """Courses of jobs that are not over, by job."""
    moved_s: float = 0
    """When something last started, stopped or ended."""
    serial: int = 0
    """Serial of the last run."""
    now_s: float | None = field(default=None, init=False)
    now_read: datetime = field(init=False)

    def instant(self, second: float) -> datetime:
        return self.begins + timedelta(seconds=second)

    def second(self, instant: datetime) -> int:
        return (instant - self.begins) // SECOND

    @property
    def now(self) -> datetime:
        if self.now_s != self.event_queue.now:
            self.now_s, self.now_read = self.event_queue.now, self.instant(self.event_queue.now)
        return self.now_read

    @property
    def idle_s(self) -> float:
        """Seconds since something last started or ended."""
        return self.event_queue.now - self.moved_s

    def expects(self, past: PastJob) -> None:
        """Prepare for a job that is submitted."""
        self.courses[past.name] = Course.of(past, self.pace)

    def news_of(self, name: str, serial: int, what: What) -> Run | None:
        """Return the run that an event is about; None if the event comes too late."""
        run = self.runs.get(name)
        if run is None or run.serial != serial or (run.stopped_s is not None and what not in AFTER_STOP):
            return None
        return run

    def may_withdraw(self, name: str) -> bool:
        """Tell whether its user would stop it: it is not over, and has not begun what it was to train."""
        course, run = self.courses.get(name), self.runs.get(name)
        if course is None or (run is not None and run.stopped_s is not None):
            return False
        has_trained = course.has_trained or (run is not None and run.has_trained(self.event_queue.now))
        return course.trains_s is None or not has_trained

    def refuses(self, vector: Vector, warm: Vector | None = None) -> bool:
        """Tell whether the account's quota of a type refuses more; warm pools count, plans do not."""
        kept, limits = warm or {}, self.account.instances
        return any(
            self._live(kind.instance_type) + kept.get(kind, 0) + count > limits[kind.instance_type]
            for kind, count in vector.items()
            if kind.instance_type in limits and not kind.is_plan
        )

    def _live(self, instance_type: str) -> int:
        held = (holding for run in self.runs.values() for holding in run.vector.items())
        return sum(count for kind, count in held if kind.instance_type == instance_type and not kind.is_plan)

    def begin(self, name: str, request: Asked, *, warm: bool = False) -> None:
        """Create an attempt, which is accepted at once."""
        now, course = self.event_queue.now, self.courses[name]
        if not next(iter(request.vector)).is_spot:
            course = self.courses[name] = course.without_interruptions()
        created_s, length = self._created_s(), startup_s(course, number=request.number, warm=warm)
        train_s = exact_s(created_s + length)
        launched = launch_s(course, number=request.number, warm=warm, startup_s=length)
        run = Run(
            serial=0,
            number=request.number,
            vector=request.vector,
            max_runtime_s=request.max_runtime // SECOND,
            max_wait_s=None if request.max_wait is None else request.max_wait // SECOND,
            start_s=now,
            launch_s=exact_s(created_s + launched),
            train_s=train_s,
            since_s=train_s,
            finish=Finish.DONE,
            warm=warm,
        )
        news = startup_news(course, number=request.number, warm=warm, startup_s=length)
        self._train(name, run, since_s=train_s, news=[exact_s(created_s + at) for at in news])
        self.moved_s = now

    def _created_s(self) -> float:
        """Return when an attempt is created, in its turn among all that the account creates."""
        if not self.account.start_gap_s:
            return self.event_queue.now
        turn = max(self.event_queue.now, self.event_queue.create_s)
        self.event_queue.create_s = turn + self.account.start_gap_s
        return turn

    def stop(self, name: str) -> None:
        """Stop an attempt; its instances are free a while later. One that uploads ends as it would."""
        now, run, course = self.event_queue.now, self.runs[name], self.courses[name]
        self.moved_s = now
        if run.uploads(now):
            return
        self.runs[name] = replace(run, stopped_s=now)
        length = stop_s(course, run, now)
        for at in stop_news(course, number=run.number, stop_s=length):
            self.event_queue.put(exact_s(now + at), What.STOPPING, self.pool, name, run.serial)
        self.event_queue.put(exact_s(now + length), What.STOPPED, self.pool, name, run.serial)

    def stop_is_known(self, name: str) -> bool:
        """Tell whether the same attempt was asked to stop, and the history has when."""
        then = as_it_was(self.courses[name], self.runs[name].number)
        return then is not None and then.began(STOPPING) is not None

    def interrupt(self, name: str) -> None:
        """Interrupt an attempt: its instances are taken, and it starts again once there are others."""
        now, run, course = self.event_queue.now, self.runs[name], self.courses[name]
        trained = run.trained_s(now)
        lost = course.breaks[0].lost if course.past.attempts else None
        lost_s = None if lost is None else min(in_s(lost), exact_s(course.done_s + trained))
        after = self.courses[name] = course.after(trained, broke=True, lost_s=lost_s)
        again = replace(
            run,
            earlier=(*run.earlier, (run.since_s, now)),
            lost_s=exact_s(run.lost_s + course.done_s + trained - after.done_s),
        )
        number, interruption = run.number, run.interruptions
        since_s = exact_s(now + replaced_s(after, number=number, interruption=interruption))
        news = restart_news(course, number=number, interruption=interruption)
        self._train(name, again, since_s=since_s, news=[exact_s(now + at) for at in news])

    def _train(self, name: str, run: Run, *, since_s: float, news: Sequence[float]) -> None:
        """Plan the training from ``since_s`` on, and the event that ends it."""
        left_s = max(run.max_runtime_s - run.trained_before_s, 0)
        finish, length = finish_of(self.courses[name], run, left_s=left_s)
        self.serial += 1
        over_s, upload_since_s = exact_s(since_s + length), None
        self._put(since_s, What.TRAINS, name)
        if finish is Finish.DONE and (upload := upload_s(self.courses[name])):
            upload_since_s = max(exact_s(over_s - upload), since_s)
            self._put(upload_since_s, What.SECONDARY, name)
        for at in news:
            self._put(at, What.SECONDARY, name)
        self.runs[name] = replace(
            run, serial=self.serial, since_s=since_s, finish=finish, upload_since_s=upload_since_s
        )
        self._put(over_s, What.OVER, name)
        if run.max_wait_s is not None:
            self._put(max(run.start_s + run.max_wait_s, self.event_queue.now), What.WAITED_TOO_LONG, name)

    def _put(self, second: float, what: What, name: str) -> None:
        self.event_queue.put(second, what, self.pool, name, self.serial)

    def end(self, name: str, *, broke: bool) -> Ended:
        """End an attempt: its instances are free."""
        run, course = self.runs.pop(name), self.courses[name]
        self.moved_s = self.event_queue.now
        self.courses[name], lost_s = settled(course, run, now=self.event_queue.now, broke=broke)
        return Ended(run=run, lost_s=lost_s)

    def saved_at(self, name: str) -> datetime | None:
        """Return when the newest checkpoint of this attempt was written; S3 has whole seconds."""
        run, course = self.runs[name], self.courses[name]
        saved = course.saved_within(run.trained_s(self.event_queue.now), run.vector)
        return self.instant(int(run.since_s + saved)) if saved > 0 else None

    def progress(self, job: Job) -> Observation:
        """Return the observation of a training job that has not ended."""
        run = self.runs[job.name]
        secondary = "Training" if run.since_s <= self.event_queue.now else "Interrupted"
        return self._observed(job, run, status="InProgress", secondary=secondary)

    def ended(self, job: Job, *, status: str, secondary: str, keeps_hosts: bool) -> Observation:
        run = self.runs[job.name]
        seen = self._observed(job, run, status=status, secondary=secondary)
        warm = keeps_hosts and seen.launched_at is not None and job.live_attempt.keep_alive is not None
        return replace(
            seen,
            failure_reason="it failed" if status == "Failed" else None,
            ended_at=self.now,
            warm_status=WARM_AVAILABLE if warm else None,
        )

    def _observed(self, job: Job, run: Run, *, status: str, secondary: str) -> Observation:
        live, last = job.live_attempt, run.last_s(self.event_queue.now)
        trained = run.has_trained(last)
        return Observation(
            training_job_name=live.training_job_name,
            training_job_arn=live.training_job_name,
            status=status,
            secondary_status=secondary,
            training_since=self.instant(run.train_s) if trained else None,
            launched_at=self.instant(run.launch_s) if run.launch_s <= last else None,
            interruptions=run.interruptions,
            training_intervals=self._intervals(run, last, has_ended=status != "InProgress"),
        )

    def _intervals(self, run: Run, last: float, *, has_ended: bool) -> tuple[TrainingInterval, ...]:
        instant = self.instant
        over = [TrainingInterval(since=instant(since), until=instant(until)) for since, until in run.earlier]
        if run.since_s > last or (run.since_s == run.stopped_s):
            return tuple(over)
        last = last if run.upload_since_s is None or not has_ended else min(last, run.upload_since_s)
        until = instant(last) if has_ended else None
        return (*over, TrainingInterval(since=instant(run.since_s), until=until))

    def row(self, name: str, ended: Ended, *, end: str, by: str | None = None) -> ReplayedAttempt:
        """Return the attempt as it went up to now."""
        run, now = ended.run, self.event_queue.now
        return ReplayedAttempt(
            job=name,
            attempt=run.number,
            pool=self.pool,
            instance_type="+".join(sorted({capacity.instance_type for capacity in run.vector})),
            capacity_type=next(iter(run.vector)).partition(":")[2] or "on-demand",
            instances=sum(run.vector.values()),
            start_s=int(run.start_s),
            train_s=int(min(run.train_s, run.last_s(now))),
            end_s=int(now),
            end=end,
            lost_s=int(ended.lost_s if end in ENDS_WITH_LOSS else run.lost_s),
            warm=run.warm,
            preempted_by=by,
            stopping_s=int(now) - int(run.last_s(now)),
        )

    def live_rows(self) -> list[ReplayedAttempt]:
        """Return the rows of what runs when the replay ends."""
        return [self.row(name, Ended(run=run, lost_s=0), end="live") for name, run in self.runs.items()]

    def fork(self, event_queue: EventQueue) -> Self:
        """Copy it to go its own way; values in it never change, so only containers are copied."""
        return replace(self, event_queue=event_queue, runs=dict(self.runs), courses=dict(self.courses))
