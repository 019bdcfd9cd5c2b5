"""How long the jobs of a forecast train: the distribution of earlier ones, also of those not over yet."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.core.durations.histogram import Histogram, bucket
from trainmaster.core.durations.learned import LikelyLengths
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.jobs.instances import Shape, lane_text, vector_text
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.run_time import END_SLACK
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.snapshot import ExpectedRun, RunningJob, WaitingJob

_HARDLY_ANY = 1e-6


def shares(
    completed: Mapping[int, float], unfinished: Iterable[timedelta], *, limit: int
) -> dict[int, float]:
    """How likely each length is, by bucket; they add up to one. None, where no job has ended.

    The jobs that are still at it are the long ones: left out, every job would seem short. Source: Kaplan and
    Meier (1958), "Nonparametric estimation from incomplete observations".

    Args:
        completed: Jobs by length.
        unfinished: How long jobs have trained that have not ended.
        limit: Bucket of the longest that they may train.
    """
    if not completed:
        return {}
    censored = Counter(bucket(length) for length in unfinished)
    at_risk = sum(completed.values()) + censored.total()
    left = 1.0
    found: dict[int, float] = {}
    for number in range(
        min((*completed, *censored), default=0), max((*completed, *censored), default=-1) + 1
    ):
        at_risk -= censored[number] / 2  # in the middle of the bucket, on average
        ended = completed.get(number, 0)
        if ended:
            found[number] = left * ended / at_risk
            left -= found[number]
        at_risk -= ended + censored[number] / 2
    if left > _HARDLY_ANY:
        _spread(found, left, range(max(censored), max(limit, *censored) + 1))
    return found


def _spread(found: dict[int, float], left: float, buckets: range) -> None:
    """Nobody knows how long those train that outlast all others: up to the limit, each bucket alike."""
    for number in buckets:
        found[number] = found.get(number, 0) + left / len(buckets)


START_UP = timedelta(minutes=4)
"""From the start of an attempt to Training, on new instances. Source: typical of SageMaker training jobs."""
LOST_BY_STOP = timedelta(minutes=15)
"""Training that a stop costs a job with checkpoints: half of the usual time between two of them."""
BORROWED_JOBS = 5.0
"""What the run times of the whole pool count for beside a team's own, in jobs."""
USUAL_LIMIT = timedelta(days=1)
"""SageMaker's MaxRuntimeInSeconds where nobody asks for another. Source: SageMaker API, StoppingCondition."""

LaneKey = tuple[str, str]
"""Team, and ``lane_text`` of what its jobs ask for."""
Kind = tuple[LaneKey, int]
"""With the bucket of MaxRuntimeInSeconds: who asks for more time also trains for longer."""


class Durations:
    """Distributions are made once, and drawn from in every future."""

    def __init__(self, known: Mapping[LaneKey, RunTimes], unfinished: Mapping[Kind, list[timedelta]]) -> None:
        self._known = known
        self._unfinished = unfinished
        self._made: dict[tuple[Kind, LikelyLengths | None], Histogram] = {}

    @classmethod
    def of(
        cls,
        known: Mapping[LaneKey, RunTimes],
        running: Iterable[RunningJob],
        waiting: Iterable[WaitingJob],
        *,
        now: datetime,
    ) -> "Durations":
        unfinished: dict[Kind, list[timedelta]] = defaultdict(list)
        for job in running:
            unfinished[_kind(job)].append(trained(job, now=now))
        for one in waiting:
            if one.trained:
                unfinished[_kind(one)].append(one.trained)
        return cls(known, unfinished)

    def of_waiting(self, job: WaitingJob, chance: float) -> timedelta:
        """How long its next attempt trains if nobody stops it."""
        saved = _saved(job)
        lengths = self._lengths(_kind(job), job.likely)
        longer_than, most = job.trained or timedelta(), saved + job.runs_at_most
        return _whole(lengths, chance, longer_than=longer_than, most=most) - saved

    def of_running(self, job: RunningJob, chance: float, *, now: datetime) -> timedelta:
        """How long its attempt trains in all if nobody stops it."""
        saved = _saved(job)
        lengths = self._lengths(_kind(job), job.expected.likely)
        longer_than, most = trained(job, now=now), saved + runs_at_most(job)
        return _whole(lengths, chance, longer_than=longer_than, most=most) - saved

    def _lengths(self, kind: Kind, likely: LikelyLengths | None) -> Histogram:
        """Half of what jobs of its team and shape have come to by now, half of what its like had by then.

        The one knows of those that have not ended yet, the other of the job's own program.
        """
        if (kind, likely) not in self._made:
            of_kind = self._lengths(kind, None) if likely is not None else self._lengths_of(kind)
            if likely is not None:
                of_kind = of_kind.with_prior(likely.histogram, jobs=of_kind.total or 1.0)
            self._made[kind, likely] = of_kind
        return self._made[kind, likely]

    def _lengths_of(self, kind: Kind) -> Histogram:
        """The team's own, filled up with the pool's; where nobody had this limit, those of any limit."""
        key, limit = kind
        own, everybody = self._known.get(key), self._known.values()
        if any(limit in times.counts for times in everybody):
            completed = Counter(own.counts.get(limit, {}) if own else {})
            pool = sum((Counter(times.counts.get(limit, {})) for times in everybody), Counter[int]())
        else:
            completed = Counter(own.all_counts if own else {})
            pool = sum((Counter(times.all_counts) for times in everybody), Counter[int]())
        others = [one for (_, same), found in self._unfinished.items() if same == limit for one in found]
        weights: dict[int, float] = dict(completed)
        for number, share in shares(pool, others, limit=limit).items():
            weights[number] = weights.get(number, 0) + BORROWED_JOBS * share
        return Histogram(shares(weights, self._unfinished.get(kind, ()), limit=limit))


def _whole(lengths: Histogram, chance: float, *, longer_than: timedelta, most: timedelta) -> timedelta:
    """How long a job trains of which so much is known."""
    drawn = lengths.quantile(chance, longer_than=longer_than)
    if drawn is None:
        return longer_than + max(most - longer_than, timedelta()) * chance
    return max(min(drawn, most), longer_than)


def _kind(job: WaitingJob | RunningJob) -> Kind:
    most = job.runs_at_most if isinstance(job, WaitingJob) else runs_at_most(job)
    return lane_of(job), bucket(_saved(job) + most)


def lane_of(job: WaitingJob | RunningJob) -> LaneKey:
    """Of a job that runs, as if it had asked for what it has."""
    if isinstance(job, WaitingJob):
        return (job.team, lane_text(job.shapes, job.choice))
    return (job.team, vector_text(job.vector))


def _saved(job: WaitingJob | RunningJob) -> timedelta:
    """What earlier attempts have left behind in checkpoints: about all that they trained."""
    earlier = job.trained if isinstance(job, WaitingJob) else job.expected.trained
    return earlier if earlier and job.has_checkpoint else timedelta()


def trained(job: RunningJob, *, now: datetime) -> timedelta:
    """What is known by now of how long it trains."""
    gone = max(now - job.training_since, timedelta()) if job.training_since else timedelta()
    return max(job.expected.trained or timedelta(), _saved(job) + gone)


def runs_at_most(job: RunningJob) -> timedelta:
    """MaxRuntimeInSeconds of an attempt; the usual one where nobody noted it."""
    if job.expected.at_most is not None:
        return job.expected.at_most
    if job.expected.ends_by is None or job.training_since is None:
        return USUAL_LIMIT
    return job.expected.ends_by - END_SLACK - job.training_since


def saved_by(job: RunningJob, *, stopped: datetime) -> timedelta:
    """Training of this attempt that a stop at this instant leaves in checkpoints."""
    since = job.training_since
    if since is None or not job.has_checkpoint or stopped <= since:
        return timedelta()
    seen = job.checkpoint.last - since if job.checkpoint.last else timedelta()
    return max(seen, stopped - since - LOST_BY_STOP, timedelta())


def stopping(victim: RunningJob, action: Preempt) -> RunningJob:
    """The victim once it was asked; its end adds a preemption, which a reclaim does not count."""
    return replace(
        victim,
        state=JobState.PREEMPTING,
        stop_sent=True,
        preempted_for=action.job.name,
        preemptions=victim.preemptions - (victim.name in action.reclaimed),
    )


def waits_again(job: RunningJob, asked_as: WaitingJob | None) -> WaitingJob:
    """A job that was stopped, in its old turn; ``asked_as``: as it waited before, where that is known."""
    if asked_as is not None:
        return replace(asked_as, state=JobState.PREEMPTED, futile=None)  # it has trained since
    return WaitingJob(
        name=job.name,
        ver=job.ver,
        team=job.team,
        state=JobState.PREEMPTED,
        shapes=(Shape(vector=job.vector),),
        priority=job.priority,
        score=job.score,
        share_ms=job.share_ms,
        submitted_at=job.claimed_at,
        runs_at_most=runs_at_most(job),
        has_checkpoint=job.has_checkpoint,
        predicted=job.expected.predicted,
    )


def runs(job: WaitingJob, shape: Shape, *, at: datetime, stops: int) -> RunningJob:
    """A job of a forecast that got its instances at this instant."""
    trains = at + START_UP
    return RunningJob(
        name=job.name,
        ver=job.ver,
        team=job.team,
        state=JobState.RUNNING,
        vector=shape.vector,
        priority=job.priority,
        score=job.score,
        share_ms=job.share_ms,
        claimed_at=at,
        lease_until=trains,
        training_job_name=job.name,
        known_to_sagemaker=True,
        training_since=trains,
        stop_sent=False,
        preemptible=True,
        has_checkpoint=job.has_checkpoint,
        preemptions=stops,
        expected=ExpectedRun(at_most=job.runs_at_most, ends_by=trains + job.runs_at_most + END_SLACK),
    )
