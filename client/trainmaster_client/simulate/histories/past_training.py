"""Reads training from attempts: how much counted, what broke it off, how often it saves."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from trainmaster_client.simulate.engine.past_jobs import (
    INTERRUPTED,
    STOPPED_BY_QUEUE,
    STOPPING,
    TRAINING,
    Break,
)
from trainmaster_client.simulate.histories.export_lines import ExportedAttempt, ExportedJob

USUAL_INTERVAL = timedelta(minutes=30)
"""Time between checkpoints if no job tells any."""
LEAST_SAVES = 2
"""Jobs that are needed to tell the interval of a team."""
SHORTEST_INTERVAL = timedelta(minutes=1)
CLOCKS_APART = timedelta(seconds=3)
"""Most difference between the clocks of training, SageMaker and S3."""
MOST_OFF = 0.1
"""Share of saves that may not fit: of another program, or made by hand."""
_UNITS = (timedelta(minutes=1), timedelta(seconds=10), timedelta(seconds=1))
MOST_SAVES = 1000
"""Most saves in one attempt, when its interval is looked for."""
_NOTHING = timedelta()


class InterruptionLoss(NamedTuple):
    again: timedelta
    """Training that the interruption made necessary again."""
    saved_since: bool
    """Whether what came after the last regular save would be more than was trained afterwards."""


def trained(attempt: ExportedAttempt, read_at: datetime) -> timedelta:
    """Return the training up to ``read_at`` if it still trained; without its time in Stopping if known."""
    if attempt.trained is not None:
        return attempt.trained
    if attempt.training_since is None:
        return _NOTHING
    return max((attempt.ended_at or read_at) - attempt.training_since, _NOTHING) * attempt.speed


def all_lost(attempts: Sequence[ExportedAttempt]) -> tuple[ExportedAttempt, ...]:
    """Correct the losses of a job that saves nothing: they are exported in whole seconds only."""
    return tuple(
        replace(attempt, lost=intervals(attempt)[-1])
        if attempt.lost and abs(intervals(attempt)[-1] - attempt.lost) <= CLOCKS_APART
        else attempt
        for attempt in attempts
    )


def with_real_losses(
    attempts: Sequence[ExportedAttempt], saves_every: timedelta | None
) -> tuple[ExportedAttempt, ...]:
    """Limit each attempt's loss at its end to what it had trained since its last save.

    A loss is exported as far as checkpoints were seen, and they are looked at every five minutes: it is too
    large, or 0 where none was seen. What interruptions lost is in ``interruption_losses``.

    Args:
        attempts: Of one job.
        saves_every: As programs of its team do; None: not known.
    """
    if saves_every is None:
        return tuple(replace(attempt, lost=min(attempt.lost, intervals(attempt)[-1])) for attempt in attempts)
    done, corrected = _NOTHING, list[ExportedAttempt]()
    for attempt in attempts:
        *interrupted, last = intervals(attempt)
        for length in interrupted:
            done = max((done + length) // saves_every * saves_every, done)
        since_save = min((done + last) % saves_every, last)
        is_likely = not attempt.lost or since_save <= attempt.lost + CLOCKS_APART
        real = replace(attempt, lost=since_save if is_likely else attempt.lost)
        done += max(last - real.lost, _NOTHING)
        corrected.append(real)
    return tuple(corrected)


def with_certain_losses(
    attempts: Sequence[ExportedAttempt], read_at: datetime
) -> tuple[ExportedAttempt, ...]:
    """Limit losses of a job that is over: no attempt lost more than was trained again after it."""
    after, corrected = _NOTHING, list[ExportedAttempt]()
    for attempt in reversed(attempts):
        length = trained(attempt, read_at) if corrected else _held(attempt, read_at)
        certain = replace(attempt, lost=min(attempt.lost, after)) if corrected else attempt
        after += max(length - certain.lost, _NOTHING) if corrected else length
        corrected.append(certain)
    return tuple(reversed(corrected))


def counted(attempts: Sequence[ExportedAttempt], read_at: datetime) -> timedelta:
    """Return the training that did not have to be done again; of the last attempt all of it."""
    earlier = (max(trained(attempt, read_at) - attempt.lost, _NOTHING) for attempt in attempts[:-1])
    return sum(earlier, _held(attempts[-1], read_at) if attempts else _NOTHING)


def least_needed(attempts: Sequence[ExportedAttempt], read_at: datetime) -> timedelta:
    """Return the least a job that is not over needs: what any attempt had reached was not enough."""
    done, most = _NOTHING, _NOTHING
    for attempt in attempts:
        length = trained(attempt, read_at)
        most = max(most, done + length)
        done += max(length - attempt.lost, _NOTHING)
    return most


def _held(last: ExportedAttempt, read_at: datetime) -> timedelta:
    """Return time from Training to the end with the upload; if stopped or unclear, the training alone."""
    if last.statuses and last.ended_at is not None:
        return trained(last, read_at) + _uploaded(last, last.ended_at)
    if last.training_since is None or last.interruptions:
        return trained(last, read_at)
    return max((last.ended_at or read_at) - last.training_since, _NOTHING) * last.speed


def _uploaded(last: ExportedAttempt, ended_at: datetime) -> timedelta:
    """Return the time between the end of training and the end; none if it was stopped."""
    if STOPPING in dict(last.statuses):
        return _NOTHING
    ends = [at for (status, _), (_, at) in pairwise(last.statuses) if status == TRAINING]
    return ended_at - last.started_at - ends[-1] if ends else _NOTHING


def cold_start_of(attempts: Sequence[ExportedAttempt], *, is_over: bool) -> timedelta | None:
    """Return the time from claim to Training of the first attempt on new instances; None if there was none.

    Of a job that ended before it trained: how long it held its instances.
    """
    for attempt in attempts:
        if attempt.training_since is not None and not attempt.warm_start:
            return max(attempt.training_since - attempt.started_at, _NOTHING)
    if not is_over or not attempts or any(attempt.training_since for attempt in attempts):
        return None
    last = attempts[-1]
    return None if last.ended_at is None else max(last.ended_at - last.started_at, _NOTHING)


def breaks_of(
    attempts: Sequence[ExportedAttempt], failures: Collection[str], losses: Sequence[InterruptionLoss]
) -> Iterator[Break]:
    """Yield failures that the job came back from, and interruptions of spot instances.

    Args:
        attempts: Of one job.
        failures: Reason codes of failed attempts.
        losses: ``interruption_losses``.
    """
    since, lost = _NOTHING, iter(losses)
    for number, attempt in enumerate(attempts):
        *interrupted, last = intervals(attempt)
        for length in interrupted:
            again, saved_since = next(lost)
            yield Break(after=since + length, code=INTERRUPTED, lost=again if saved_since else None)
            since = _NOTHING
        since += last
        if number < len(attempts) - 1 and attempt.end in failures:
            yield Break(after=since, code=attempt.end or "")
            since = _NOTHING


def intervals(attempt: ExportedAttempt) -> list[timedelta]:
    """Times of training that interruptions ended, and the last; alike where only their number is known."""
    count = attempt.interruptions or 0
    if count and len(attempt.intervals) >= count:
        rest = sum(attempt.intervals[count:], _NOTHING)
        return [*attempt.intervals[:count], rest]
    whole = trained(attempt, attempt.ended_at or attempt.started_at)
    return [whole / (count + 1)] * (count + 1)


def interruption_losses(
    attempts: Sequence[ExportedAttempt], saves_every: timedelta | None
) -> list[InterruptionLoss]:
    """Return for each spot interruption what came after the last save, as a replay computes it."""
    after = sum((sum(intervals(attempt), _NOTHING) for attempt in attempts), _NOTHING)
    after += max(
        (_uploaded(attempt, attempt.ended_at) for attempt in attempts[-1:] if attempt.ended_at),
        default=_NOTHING,
    )
    losses, done = list[InterruptionLoss](), _NOTHING
    for attempt in attempts:
        *interrupted, last = intervals(attempt)
        for length in interrupted:
            after -= length
            saved = max((done + length) // saves_every * saves_every, done) if saves_every else _NOTHING
            unsaved = done + length - saved
            saved_since = saves_every is not None and unsaved > after
            losses.append(InterruptionLoss(after if saved_since else unsaved, saved_since))
            done += length - losses[-1].again
        after -= last
        done += max(last - attempt.lost, _NOTHING)
    return losses


def saving_interval(attempts: Sequence[ExportedAttempt]) -> timedelta | None:
    """Return the interval that best explains each stop's loss; None if none was stopped in training.

    A job that had trained for 50 minutes in all and lost 5 saved last after 45: its interval is 45 minutes,
    or 45 divided by a whole number, but longer than 5. Of those the one nearest to twice the mean loss is
    taken, as a stop loses half an interval on average. Where every stop lost all, it had not
    come to its first save.
    """
    stops = list(_stops(attempts))
    seen = [(whole, lost) for whole, lost in stops if lost < whole]
    if not seen:
        return 2 * max(whole for whole, _ in stops) if stops else None
    expected = 2 * sum((lost for _, lost in seen), _NOTHING) / len(seen) or USUAL_INTERVAL
    return min(_candidates(seen), key=lambda every: (_misses(every, seen), abs(every - expected)))


def common_intervals(exported: Iterable[ExportedJob]) -> dict[str, timedelta]:
    """Return the interval by team, if its programs save alike."""
    teams: defaultdict[str, list[Sequence[ExportedAttempt]]] = defaultdict(list)
    for job in exported:
        if job.saves_checkpoints:
            teams[job.team].append(job.attempts)
    intervals_by_team = {team: common_interval(attempts) for team, attempts in teams.items()}
    return {team: every for team, every in intervals_by_team.items() if every is not None}


def common_interval(jobs: Iterable[Sequence[ExportedAttempt]]) -> timedelta | None:
    """Return the longest interval at whose multiples nearly all saves were; None if there is none.

    Programs of one team are often of one kind. A first attempt says when it saved last, or it lost less than
    it had trained, and saved last when it had trained for the rest.

    Args:
        jobs: The attempts of each job that saves.
    """
    firsts = [attempts[0] for attempts in jobs if attempts and not attempts[0].interruptions]
    saves = [save for first in firsts if (save := _last_save(first)) is not None]
    if len(saves) < LEAST_SAVES:
        return None
    last = max(saves)
    candidates = (last / number for number in range(1, last // SHORTEST_INTERVAL + 1))
    return next((_in_round_numbers(every, saves) for every in candidates if _fits(every, saves)), None)


def _in_round_numbers(every: timedelta, saves: Sequence[timedelta]) -> timedelta:
    """Round the interval: clocks disagree by seconds, and people write minutes."""
    rounded = (round(every / unit) * unit for unit in _UNITS)
    return next((candidate for candidate in rounded if candidate and _fits(candidate, saves)), every)


def _last_save(first: ExportedAttempt) -> timedelta | None:
    """Return after how much training it last saved; None if not known, or before it trained."""
    if first.training_since is None:
        return None
    if first.checkpoint_at is not None:
        return (
            (first.checkpoint_at - first.training_since) * first.speed
            if first.checkpoint_at > first.training_since
            else None
        )
    own = trained(first, first.ended_at or first.started_at)
    return own - first.lost if first.end in STOPPED_BY_QUEUE and _NOTHING < first.lost < own else None


def _fits(every: timedelta, saves: Sequence[timedelta]) -> bool:
    off = sum(min(saved % every, every - saved % every) > CLOCKS_APART for saved in saves)
    return off <= len(saves) * MOST_OFF


def _stops(attempts: Sequence[ExportedAttempt]) -> Iterator[tuple[timedelta, timedelta]]:
    """Yield for each attempt that the job came back from its training up to then, and what was lost."""
    done = _NOTHING
    for attempt in attempts[:-1]:
        own = trained(attempt, attempt.ended_at or attempt.started_at)
        if own:
            yield done + own, min(attempt.lost, own)
        done += max(own - attempt.lost, _NOTHING)


def _candidates(seen: Sequence[tuple[timedelta, timedelta]]) -> Iterator[timedelta]:
    for whole, lost in seen:
        saved = whole - lost
        most = min(MOST_SAVES, saved // max(lost, timedelta(minutes=1)) or 1)
        yield from (saved / number for number in range(1, most + 1))


def _misses(every: timedelta, seen: Sequence[tuple[timedelta, timedelta]]) -> timedelta:
    """Return how far losses are off, in whole minutes, as clocks do not agree to the second."""
    off = sum((abs(whole % every - lost) for whole, lost in seen), _NOTHING)
    return off // timedelta(minutes=1) * timedelta(minutes=1)
