"""Turns exported lines into the jobs of a replay: what counted, what broke, what is estimated."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from trainmaster.core.jobs.failures import FailureClass
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.width_worth import PER_DOUBLING
from trainmaster.core.policy import UNMANAGED

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.simulate.engine.past_jobs import (
    RESIZES,
    STOPPED_BY_QUEUE,
    STOPPING,
    History,
    Pace,
    PastJob,
)
from trainmaster_client.simulate.histories.carried_in_jobs import carried_in
from trainmaster_client.simulate.histories.export_lines import ExportedAttempt, ExportedJob
from trainmaster_client.simulate.histories.line_problems import count_of, part_of
from trainmaster_client.simulate.histories.measured_pace import measured_pace, past_attempt
from trainmaster_client.simulate.histories.past_parents import with_parents
from trainmaster_client.simulate.histories.past_tasks import array_of, order_of_line
from trainmaster_client.simulate.histories.past_training import (
    USUAL_INTERVAL,
    all_lost,
    breaks_of,
    cold_start_of,
    common_intervals,
    counted,
    interruption_losses,
    least_needed,
    saving_interval,
    trained,
    with_certain_losses,
    with_real_losses,
)
from trainmaster_client.simulate.histories.past_widths import (
    as_they_trained,
    at_largest_width,
    past_widths,
    shows_speeds,
)
from trainmaster_client.simulate.histories.typical_lengths import TypicalLengths

USUAL_RUN = timedelta(hours=1)
"""Run time of a job that never trained, if no other job tells any."""
_BY_LIMITS = (ReasonCode.MAX_RUNTIME, ReasonCode.MAX_WAIT, ReasonCode.IDLE, ReasonCode.UNDERUSED)
_BY_LOSS = (ReasonCode.LOSS_NOT_FINITE, ReasonCode.LOSS_DIVERGED, ReasonCode.LOSS_PLATEAU)
_STOPPED = frozenset({ReasonCode.STOPPED_BY_USER, ReasonCode.STOPPED_OUTSIDE, *_BY_LIMITS, *_BY_LOSS})
_BY_USERS = frozenset({ReasonCode.STOPPED_BY_USER, ReasonCode.STOPPED_OUTSIDE})
_FAILED_CLASSES = frozenset(failure_class.code for failure_class in FailureClass)
_COMES_BACK = _FAILED_CLASSES | STOPPED_BY_QUEUE | RESIZES
_FOR_ITS_GPUS = (ReasonCode.IDLE_REQUEUE, ReasonCode.UNDERUSED_REQUEUE)
_NOT_REPEATED = frozenset({*_FOR_ITS_GPUS, ReasonCode.SPOT_FALLBACK, ReasonCode.RESTORED})
"""Ends of attempts after which the job came back that a replay does not repeat."""


@dataclass(slots=True, kw_only=True)
class _Facts:
    """Facts of one line, before what is not known is estimated from the other lines."""

    job: ExportedJob
    attempts: Sequence[ExportedAttempt]
    """Attempts without losses that cannot be."""
    trains_for: timedelta | None
    """Time the job trains; None if it never trained."""
    saves_every: timedelta | None
    """Time between its saves; None if it was never stopped, so that nothing tells."""
    is_open: bool
    """Whether it had not ended when the history was read."""


@dataclass(slots=True, kw_only=True)
class _Counts:
    """Counts jobs by the sentence about them."""

    of: Counter[str] = field(default_factory=Counter)

    def note(self, sentence: str) -> None:
        self.of[sentence] += 1

    def sentences(self, total: int) -> Iterator[str]:
        for sentence, count in self.of.items():
            yield sentence.format(count=count_of(count, "job"), part=part_of(count, total, "job"))


def exported_history(
    lines: Iterable[ExportedJob],
    *,
    source: str,
    read_at: datetime | None = None,
    begins: datetime | None = None,
) -> History:
    """Return the jobs of exported lines in the order of submission.

    Args:
        lines: As they were read; of two about the same job the later counts.
        source: For people.
        read_at: When they were exported; None: the last instant that they speak of.
        begins: The instant from which on they are whole; None: the first submission.

    Raises:
        InvalidArgumentError: There is no job to replay.
    """
    whole = {line.key: line for line in lines}
    counts = _Counts()
    exported = sorted(_of_pools(whole.values(), counts), key=order_of_line)
    if not exported:
        raise InvalidArgumentError(f"{source} has no jobs to replay.", hint="Give a longer period.")
    read_at = read_at or max(at for line in exported for at in _instants(line))
    counted_lines = [at_largest_width(line) for line in exported]
    common = common_intervals(counted_lines)
    facts = [_facts(line, read_at, common.get(line.team)) for line in counted_lines]
    pace = measured_pace(exported)
    jobs = tuple(_once(_jobs(zip(facts, exported, strict=True), counts, pace)))
    first = min(job.submitted_at for job in jobs).replace(minute=0, second=0, microsecond=0)
    since = first if begins is None or all(job.submitted_at >= begins for job in jobs) else begins
    jobs, edge = carried_in(jobs, since)
    jobs, met = with_parents(jobs, exported)
    known = (*counts.sentences(len(jobs)), *edge, *met)
    return History(source=source, begins=since, jobs=jobs, pace=pace, not_known=known)


def _of_pools(lines: Iterable[ExportedJob], counts: _Counts) -> Iterator[ExportedJob]:
    for line in lines:
        if line.pool == UNMANAGED:
            counts.note("{count} bypassed the queue on instances of no pool: left out.")
        elif not line.attempts and line.end is not None and line.ended_at is None:
            counts.note("{count} ended without an attempt, at an instant that is not exported: left out.")
        else:
            yield line


def _instants(line: ExportedJob) -> Iterator[datetime]:
    yield line.submitted_at
    if line.ended_at is not None:
        yield line.ended_at
    for attempt in line.attempts:
        yield attempt.ended_at or attempt.training_since or attempt.started_at


def _facts(line: ExportedJob, read_at: datetime, common: timedelta | None) -> _Facts:
    """Gather the facts of a line; ``common`` is the time between saves of its team's programs."""
    last = line.attempts[-1] if line.attempts else None
    attempts = with_real_losses(line.attempts, common) if line.saves_checkpoints else all_lost(line.attempts)
    if line.end is not None and line.end not in _BY_USERS:
        attempts = with_certain_losses(attempts, read_at)
    counts = counted(attempts, read_at)
    if last is not None and line.end is None:
        # It is taken to need as much again as its last attempt trained, also where it waits to resume.
        counts = max(counts, least_needed(attempts, read_at)) + trained(last, read_at)
    has_trained = any(attempt.training_since for attempt in line.attempts) and not _stopped_meanwhile(line)
    return _Facts(
        job=line,
        attempts=attempts,
        trains_for=min(counts, line.max_runtime) if has_trained else None,
        saves_every=(common or saving_interval(line.attempts)) if line.saves_checkpoints else None,
        is_open=line.end is None,
    )


def _stopped_meanwhile(line: ExportedJob) -> bool:
    """Tell whether its user stopped it while it waited to resume, or in an attempt after the first.

    Then no training that counts tells when: what was lost before may be more.
    """
    if line.end not in _STOPPED or not line.attempts or line.ended_at is None:
        return False
    last = line.attempts[-1]
    comes_back = last.end in _COMES_BACK or last.training_since is None
    return comes_back or (line.end in _BY_USERS and len(line.attempts) > 1)


def _jobs(pairs: Iterable[tuple[_Facts, ExportedJob]], counts: _Counts, pace: Pace) -> Iterator[PastJob]:
    """Yield the jobs; each line is given beside its facts, which count at an elastic job's largest width."""
    known = list(pairs)
    runs = TypicalLengths.of((fact.job.team, fact.trains_for) for fact, _ in known if not fact.is_open)
    intervals = TypicalLengths.of((fact.job.team, fact.saves_every) for fact, _ in known)
    for fact, line in known:
        attempts = as_they_trained(fact.attempts, line.attempts)
        past = tuple(past_attempt(attempt, upload=pace.upload) for attempt in attempts)
        yield replace(_job(fact, runs, intervals, counts), attempts=past)


def _job(facts: _Facts, runs: TypicalLengths, intervals: TypicalLengths, counts: _Counts) -> PastJob:
    line = facts.job
    for sentence in _assumptions(facts):
        counts.note(sentence)
    trains_for = facts.trains_for
    withdrawn_after = _withdrawn_after(line) if trains_for is None else None
    if trains_for is None and facts.is_open:
        trains_for = min(runs.value(line.team, USUAL_RUN), line.max_runtime)
    saves_every = facts.saves_every or intervals.value(line.team, USUAL_INTERVAL)
    losses = interruption_losses(facts.attempts, saves_every if line.saves_checkpoints else None)
    again = sum((loss.again for loss in losses), timedelta())
    return PastJob(
        name=line.name,
        team=line.team,
        submitted_by=line.submitted_by,
        submitted_at=line.submitted_at,
        pool=line.pool,
        instances=line.instances,
        capacity_type=line.capacity_type,
        priority=line.priority,
        max_runtime=line.max_runtime,
        trains_for=max((trains_for or timedelta()) - again, timedelta()),
        end=_end(line),
        saves_every=saves_every if line.saves_checkpoints else None,
        cold_start=cold_start_of(line.attempts, is_over=line.end is not None),
        breaks=tuple(breaks_of(line.attempts, _FAILED_CLASSES, losses)),
        preemptible=line.preemptible is not False,
        entry_id=line.entry_id,
        max_wait=line.max_wait,
        warm_key=line.warm_key,
        learned_in=line.learned_in,
        withdrawn_after=withdrawn_after,
        array=array_of(line),
        elastic=past_widths(line),
        avoids_plans=line.avoids_plans,
    )


def _assumptions(facts: _Facts) -> Iterator[str]:
    """Yield the sentences that this job is counted under."""
    line, attempts = facts.job, facts.job.attempts
    if (about := _assumed_end(facts)) is not None:
        yield about
    if line.saves_checkpoints:
        how = "what their stops lost" if facts.saves_every else "those of other jobs, else 30 minutes"
        yield "The checkpoint interval of {part} is not recorded: estimated from " + how + "."
    for concerns, sentence in (
        (any(attempt.end in _NOT_REPEATED for attempt in attempts[:-1]), _OTHER_RETURNS),
        (any(attempt.warm_start is None for attempt in attempts), _WARM_UNKNOWN),
        (any(attempt.interruptions and not attempt.intervals for attempt in attempts), _INTERRUPTIONS),
        (len(line.instances) > 1, _SEVERAL_TYPES),
        (line.array is not None and line.array_stop_after is None, _ARRAY_UNKNOWN),
        (line.elastic is not None and not shows_speeds(line.elastic), _SPEEDS_UNKNOWN),
    ):
        if concerns:
            yield sentence


_OTHER_RETURNS = (
    "{count} came back after idle GPUs, leaving spot or a restore: a replay does not repeat that."
)
_WARM_UNKNOWN = "Which attempts of {part} started in a warm pool is not recorded: all are taken as cold."
_INTERRUPTIONS = "When spot instances of {count} were interrupted is not recorded: taken at even distances."
_ARRAY_UNKNOWN = "The throttles of the arrays of {part} are not recorded: replayed without any."
_SPEEDS_UNKNOWN = (
    "How fast {part} trained at each width is not recorded in full: twice the instances are taken as "
    f"{PER_DOUBLING} times as fast."
)
_SEVERAL_TYPES = "{count} asked for several instance types: a replay takes them as wanted together."


def _assumed_end(facts: _Facts) -> str | None:
    line = facts.job
    if facts.is_open and facts.trains_for is not None:
        return "{count} had not ended when the history was read: taken to need as much training again."
    if facts.is_open:
        return "{count} had not trained yet when the history was read: taken to run for their team's median."
    if facts.trains_for is None and _withdrawn_after(line) is not None:
        return "{count} ended while waiting, most by their users: in a replay they end after as long."
    was_waiting = bool(line.attempts) and line.attempts[-1].end in _COMES_BACK
    if was_waiting and facts.trains_for is not None and _end(line) == "stopped":
        return "{count} were stopped while waiting to resume: taken as stopped when they last ran."
    return None


def _withdrawn_after(line: ExportedJob) -> timedelta | None:
    """Return when the job ended before it trained; None if it did not, or failed on instances it had."""
    if line.end is None or (line.attempts and _end(line) == "failed"):
        return None
    ended_at = line.ended_at or (line.attempts[-1].ended_at if line.attempts else None)
    stopped = dict(line.attempts[-1].statuses).get(STOPPING) if line.attempts else None
    if stopped is not None:
        ended_at = line.attempts[-1].started_at + stopped
    return None if ended_at is None else max(ended_at - line.submitted_at, timedelta())


def _end(line: ExportedJob) -> Literal["completed", "failed", "stopped"]:
    """Return the job's end; one that is not over counts as if it would complete."""
    if line.end is None or line.end == ReasonCode.COMPLETED:
        return "completed"
    return "stopped" if line.end in _STOPPED else "failed"


def _once(jobs: Iterable[PastJob]) -> Iterator[PastJob]:
    """Yield the jobs; a name that was used again gets a number behind it."""
    seen: Counter[str] = Counter()
    for job in jobs:
        seen[job.name] += 1
        yield job if seen[job.name] == 1 else replace(job, name=f"{job.name}~{seen[job.name]}")
