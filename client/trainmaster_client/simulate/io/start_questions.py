"""When a job would have started, had it been submitted at each hour of a history."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainmaster.core.policy import Policy

from trainmaster_client.simulate.engine.admitted_jobs import Admission, Admitted
from trainmaster_client.simulate.engine.event_loop import Engine, engine_of, groups
from trainmaster_client.simulate.engine.past_jobs import History, PastJob
from trainmaster_client.simulate.engine.pool_replay import PoolReplay
from trainmaster_client.simulate.engine.replay_progress import Progress
from trainmaster_client.simulate.engine.runs import SECOND
from trainmaster_client.simulate.io.processes import Work, spread

EVERY = timedelta(hours=1)
BOUND = timedelta(days=7)
"""A job that has not started so long after its submission is followed no further."""
FEW_HOURS = 24
"""Hours up to which processes of their own would cost more than they save."""
NAME = "the-job-asked-about"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one submission."""

    submitted_at: datetime
    waits: timedelta | None
    """Time until its first start; None if it had not started after ``BOUND``, or when all others had
    ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    refused: str | None = None
    """Reason why the policy never admits it; then nothing was replayed."""
    answers: tuple[Answer, ...] = ()
    """Answers, one for each hour, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    history: History
    policy: Policy
    job: PastJob


Seconds = tuple[int, ...]
"""Seconds of the history at which the job is submitted."""


def ask(
    history: History,
    policy: Policy,
    job: PastJob,
    *,
    progress: Progress | None = None,
    processes: int | None = None,
) -> Answers:
    """Submit the job at each hour of the history, beside all that was really submitted.

    Each answer is exact: the replay is copied at that second, the job enters its queue, and the copy goes on
    until it starts. What it holds afterwards, and whom it delays, is no part of any other answer.

    Args:
        history: From its begin to its last submission.
        policy: Decides.
        job: Only what it asks for counts; when it was submitted does not.
        progress: Hears of the share that is done.
        processes: At most; None: one for each processor.
    """
    outcome = Admission.of(policy).judge(job)
    if not isinstance(outcome, Admitted):
        return Answers(refused=outcome.reason)
    question = _Question(history=history, policy=policy, job=job)
    parts = _parts(tuple(_hours(history)), 1 if processes == 1 else 2 * (processes or 2))
    work = Work(task=_answered, shared=question, units=parts, weights=[len(part) for part in parts])
    few = sum(len(part) for part in parts) <= FEW_HOURS
    answered = spread(work, progress=progress, processes=1 if few else processes)
    return Answers(answers=tuple(answer for part in answered for answer in part))


def _hours(history: History) -> Iterator[int]:
    last = max((job.submitted_at for job in history.jobs), default=history.begins)
    at = timedelta()
    while history.begins + at <= last:
        yield at // SECOND
        at += EVERY


def _parts(seconds: Seconds, number: int) -> list[Seconds]:
    """Runs of hours: each is answered in one replay from the begin on."""
    length = max(-(-len(seconds) // number), 1)
    return [seconds[begin : begin + length] for begin in range(0, len(seconds), length)]


def _answered(question: _Question, seconds: Seconds, progress: Progress) -> Sequence[Answer]:
    policy, job = question.policy, question.job
    outcome = Admission.of(policy).judge(job)
    assert isinstance(outcome, Admitted), outcome
    (pools,) = [group for group in groups(question.history, policy) if outcome.pool.name in group]
    engine = engine_of(question.history, policy, pools, PoolReplay.of, cpu_clock=time.process_time)
    answers: list[Answer] = []
    for number, second in enumerate(seconds):
        engine.run(until=second)
        at = question.history.begins + timedelta(seconds=second)
        submission = replace(job, name=NAME, submitted_at=at, attempts=(), withdrawn_after=None)
        waits = _waits(engine, submission, outcome)
        answers.append(Answer(submitted_at=at, waits=waits))
        progress((number + 1) / len(seconds))
    return answers


def _waits(engine: Engine[PoolReplay], job: PastJob, admitted: Admitted) -> timedelta | None:
    """Return the wait of the job, in a copy of this second; None if it does not start."""
    begun_s = engine.event_queue.now
    setting = engine.setting.fork()
    pools = {name: pool.fork(setting) for name, pool in engine.pools.items()}
    children = engine.children.fork()
    copy = replace(engine, setting=setting, pools=pools, children=children, to_come=dict(engine.to_come))
    pool = pools[admitted.pool.name]
    copy.expect(job, admitted)
    while copy.step(until=begun_s + BOUND // SECOND) is not None:
        run = pool.sagemaker.runs.get(job.name)
        if run is not None:
            return timedelta(seconds=run.start_s - begun_s)
    return None
