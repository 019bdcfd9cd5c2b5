"""Training times of the jobs in a forecast, drawn from those of earlier jobs and of jobs that still run."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.core.durations.histogram import Histogram, bucket
from trainmaster.core.durations.learned import LikelyLengths
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.jobs.elastic_state import at_largest, at_width
from trainmaster.core.jobs.instances import Capacity, Choice, Shape, vector_text
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.run_time import END_SLACK
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.candidates import lane
from trainmaster.core.planning.capacity import longest_run
from trainmaster.core.planning.snapshot import ExpectedRun, RunningJob, WaitingJob

_HARDLY_ANY = 1e-6


def shares(
    completed: Mapping[int, float], unfinished: Iterable[timedelta], *, limit: int
) -> dict[int, float]:
    """Return the probability of each length, by bucket; they add up to one. Empty if no job has ended.

    The jobs that still train are the long ones: left out, every job would seem short. Source: Kaplan and
    Meier (1958), "Nonparametric estimation from incomplete observations".

    Args:
        completed: Number of jobs by bucket of their length.
        unfinished: Training times so far of jobs that have not ended.
        limit: Bucket of the longest time that they may train.
    """
    if not completed:
        return {}
    censored = Counter(bucket(length) for length in unfinished)
    at_risk = sum(completed.values()) + censored.total()
    left = 1.0
    likelihoods: dict[int, float] = {}
    for number in range(
        min((*completed, *censored), default=0), max((*completed, *censored), default=-1) + 1
    ):
        at_risk -= censored[number] / 2  # in the middle of the bucket, on average
        ended = completed.get(number, 0)
        if ended:
            likelihoods[number] = left * ended / at_risk
            left -= likelihoods[number]
        at_risk -= ended + censored[number] / 2
    if left > _HARDLY_ANY:
        _spread(likelihoods, left, range(max(censored), max(limit, *censored) + 1))
    return likelihoods


def _spread(likelihoods: dict[int, float], left: float, buckets: range) -> None:
    """Spread ``left`` evenly over the buckets up to the limit: how long the longest jobs train is unknown."""
    for number in buckets:
        likelihoods[number] = likelihoods.get(number, 0) + left / len(buckets)


START_UP = timedelta(minutes=4)
"""Time from an attempt's start to Training on new instances. Source: typical of SageMaker training jobs."""
LOST_BY_STOP = timedelta(minutes=15)
"""Training that a stop costs a job with checkpoints: half of the usual time between two of them."""
BORROWED_JOBS = 5.0
"""Number of jobs that the run times of the whole pool count for, beside a team's own."""
USUAL_LIMIT = timedelta(days=1)
"""SageMaker's MaxRuntimeInSeconds where a request has none. Source: SageMaker API, StoppingCondition."""

LaneKey = tuple[str, str]
"""Team, and ``candidates.lane`` of the instances its jobs ask for."""
Kind = tuple[LaneKey, int]
"""Lane and bucket of MaxRuntimeInSeconds: jobs that ask for more time also train longer."""


class Durations:
    """Distributions of training times, made once and drawn from in every future."""

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
        for waiting_job in waiting:
            if waiting_job.trained:
                unfinished[_kind(waiting_job)].append(waiting_job.trained)
        return cls(known, unfinished)

    def of_waiting(self, job: WaitingJob, shape: Shape, chance: float) -> timedelta:
        """Draw how long an attempt in a shape trains if it is not stopped; ``chance`` is the quantile."""
        saved, lengths = _saved(job), self._lengths(_kind(job), job.likely)
        longer_than, most = job.trained or timedelta(), saved + job.runs_at_most
        trains = _whole(lengths, chance, longer_than=longer_than, most=most) - saved
        return trains if job.widths is None else at_width(trains, shape.instances, job.widths.largest)

    def of_running(self, job: RunningJob, chance: float, *, now: datetime) -> timedelta:
        """Draw how long its attempt trains in all if it is not stopped; ``chance`` is the quantile."""
        saved, lengths = _saved(job), self._lengths(_kind(job), job.expected.likely)
        longer_than, most = trained(job, now=now), saved + runs_at_most(job)
        trains = _whole(lengths, chance, longer_than=longer_than, most=most) - saved
        return (
            trains if job.widths is None else at_width(trains, sum(job.vector.values()), job.widths.largest)
        )

    def _lengths(self, kind: Kind, likely: LikelyLengths | None) -> Histogram:
        """Mix half and half the present lengths of its team and shape with those learned at its submission.

        The first include jobs that have not ended yet; the second are those of the job's own program.
        """
        if (kind, likely) not in self._made:
            of_kind = self._lengths(kind, None) if likely is not None else self._lengths_of(kind)
            if likely is not None:
                of_kind = of_kind.with_prior(likely.histogram, jobs=of_kind.total or 1.0)
            self._made[kind, likely] = of_kind
        return self._made[kind, likely]

    def _lengths_of(self, kind: Kind) -> Histogram:
        """Return the team's lengths with some of the pool's; if no job had this limit, those of any limit."""
        key, limit = kind
        own, everybody = self._known.get(key), self._known.values()
        # Jobs of one limit are alike; with none of this limit so far, those of every limit are the best
        # guess.
        if any(limit in times.counts for times in everybody):
            completed = Counter(own.counts.get(limit, {}) if own else {})
            pool = sum((Counter(times.counts.get(limit, {})) for times in everybody), Counter[int]())
        else:
            completed = Counter(own.all_counts if own else {})
            pool = sum((Counter(times.all_counts) for times in everybody), Counter[int]())
        others = [
            length for (_, same), lengths in self._unfinished.items() if same == limit for length in lengths
        ]
        weights: dict[int, float] = dict(completed)
        for number, share in shares(pool, others, limit=limit).items():
            weights[number] = weights.get(number, 0) + BORROWED_JOBS * share
        return Histogram(shares(weights, self._unfinished.get(kind, ()), limit=limit))


def _whole(lengths: Histogram, chance: float, *, longer_than: timedelta, most: timedelta) -> timedelta:
    """Draw the whole training time of a job: more than ``longer_than``, at most ``most``."""
    drawn = lengths.quantile(chance, longer_than=longer_than)
    if drawn is None:
        # It outlasted every known job, so any end up to its limit is as likely as another.
        return longer_than + max(most - longer_than, timedelta()) * chance
    return max(min(drawn, most), longer_than)


def _kind(job: WaitingJob | RunningJob) -> Kind:
    most = job.runs_at_most if isinstance(job, WaitingJob) else runs_at_most(job)
    return lane_of(job), bucket(_saved(job) + most)


def lane_of(job: WaitingJob | RunningJob) -> LaneKey:
    """Return the lane that the job's run time will be filed under.

    A running job counts as if it had asked for the instances that it has, an elastic one for all its widths.
    """
    if isinstance(job, WaitingJob):
        return (job.team, lane(_as_submitted(job), job.choice))
    if job.widths is None:
        return (job.team, vector_text(job.vector))
    (capacity,) = job.vector
    # Plans are asked for by name only where a job wants nothing else: most have asked for the type.
    return (job.team, lane(_by_width(Capacity(capacity.instance_type), job.widths), Choice.FIRST_FIT))


def _as_submitted(job: WaitingJob) -> tuple[Shape, ...]:
    """Return the shapes of its request; an elastic job may start in fewer after a failure or a refusal."""
    if job.widths is None:
        return job.shapes
    (capacity,) = (first := job.shapes[0]).vector
    return tuple(replace(first, vector=shape.vector) for shape in _by_width(capacity, job.widths))


def _by_width(capacity: Capacity, widths: Widths) -> tuple[Shape, ...]:
    return tuple(Shape(vector={capacity: count}) for count in reversed(widths.counts))


def _saved(job: WaitingJob | RunningJob) -> timedelta:
    """Return the training that checkpoints of earlier attempts keep: about all that they trained."""
    earlier = job.trained if isinstance(job, WaitingJob) else job.expected.trained
    return earlier if earlier and job.has_checkpoint else timedelta()


def trained(job: RunningJob, *, now: datetime) -> timedelta:
    """Return the least that a running job is known to train in all, as the job counts it."""
    gone = max(now - job.training_since, timedelta()) if job.training_since else timedelta()
    return max(job.expected.trained or timedelta(), _saved(job) + _counted(job, gone))


def runs_at_most(job: RunningJob) -> timedelta:
    """Return an attempt's MaxRuntimeInSeconds as the job counts it, or the usual one where none was noted."""
    if job.expected.at_most is not None:
        return _counted(job, job.expected.at_most)
    if job.expected.ends_by is None or job.training_since is None:
        return USUAL_LIMIT
    return _counted(job, job.expected.ends_by - END_SLACK - job.training_since)


def _counted(job: RunningJob, time: timedelta) -> timedelta:
    """Return an attempt's time as the job counts it: an elastic job's as if at the largest width."""
    if job.widths is None:
        return time
    return at_largest(time, sum(job.vector.values()), job.widths.largest)


def saved_by(job: RunningJob, *, stopped: datetime) -> timedelta:
    """Return the training of this attempt that checkpoints keep if it is stopped at this instant."""
    since = job.training_since
    if since is None or not job.has_checkpoint or stopped <= since:
        return timedelta()
    seen = job.checkpoint.last - since if job.checkpoint.last else timedelta()
    return max(seen, stopped - since - LOST_BY_STOP, timedelta())


def stopping(victim: RunningJob, action: Preempt) -> RunningJob:
    """Return the victim as it is after the stop request; a reclaim does not count as a preemption."""
    return replace(
        victim,
        state=JobState.PREEMPTING,
        stop_sent=True,
        preempted_for=action.job.name,
        preemptions=victim.preemptions - (victim.name in action.reclaimed),
    )


def waits_again(job: RunningJob, asked_as: WaitingJob | None) -> WaitingJob:
    """Return a stopped job as it waits again, in its old turn.

    ``asked_as`` is how it waited before, if known.
    """
    if asked_as is not None:
        return replace(asked_as, state=JobState.PREEMPTED, futile=None)  # it has trained since
    return WaitingJob(
        name=job.name,
        ver=job.ver,
        team=job.team,
        state=JobState.PREEMPTED,
        shapes=_shapes_of(job),
        widths=job.widths,
        priority=job.priority,
        score=job.score,
        share_ms=job.share_ms,
        submitted_at=job.claimed_at,
        runs_at_most=runs_at_most(job),
        has_checkpoint=job.has_checkpoint,
        predicted=job.expected.predicted,
    )


def _shapes_of(job: RunningJob) -> tuple[Shape, ...]:
    if job.widths is None:
        return (Shape(vector=job.vector),)
    (capacity,) = job.vector
    return _by_width(capacity, job.widths)


def runs(job: WaitingJob, shape: Shape, *, at: datetime, stops: int) -> RunningJob:
    """Return a job of a forecast as it runs after it got its instances at this instant.

    Args:
        job: The job as it waited.
        shape: The shape that it runs in.
        at: When it got its instances.
        stops: Preemptions that it has had so far.
    """
    trains, longest = at + START_UP, longest_run(job, shape)
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
        expected=ExpectedRun(at_most=longest, ends_by=trains + longest + END_SLACK),
    )
