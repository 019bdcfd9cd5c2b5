"""What attempts tell of a job's training: how much counted, what broke it off, how often it saves."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from trainmaster.core.jobs.reason_codes import ReasonCode

from trainmaster_client.simulate.engine.past_jobs import INTERRUPTED, STOPPING, TRAINING, Break
from trainmaster_client.simulate.histories.export_lines import ExportedAttempt, ExportedJob

USUAL_INTERVAL = timedelta(minutes=30)
"""Between checkpoints, where no job tells anything."""
LEAST_SAVES = 2
"""So many jobs tell the interval of a team."""
SHORTEST_INTERVAL = timedelta(minutes=1)
CLOCKS_APART = timedelta(seconds=3)
"""Of training, SageMaker and S3."""
MOST_OFF = 0.1
"""Share of saves that may not fit: of another program, or made by hand."""
_UNITS = (timedelta(minutes=1), timedelta(seconds=10), timedelta(seconds=1))
MOST_SAVES = 1000
"""In one attempt, when its interval is looked for."""
_NOTHING = timedelta()


class InterruptionLoss(NamedTuple):
    again: timedelta
    """Training that it made necessary again."""
    saved_since: bool
    """What came after the last regular save would be more than was trained afterwards."""


def trained(attempt: ExportedAttempt, read_at: datetime) -> timedelta:
    """Up to ``read_at`` where it still trained then; without its time in Stopping where that is known."""
    if attempt.trained is not None:
        return attempt.trained
    if attempt.training_since is None:
        return _NOTHING
    return max((attempt.ended_at or read_at) - attempt.training_since, _NOTHING)


def all_lost(attempts: Sequence[ExportedAttempt]) -> tuple[ExportedAttempt, ...]:
    """Of a job that saves nothing: losses are exported in whole seconds, times of training are exact."""
    return tuple(
        replace(one, lost=intervals(one)[-1])
        if one.lost and abs(intervals(one)[-1] - one.lost) <= CLOCKS_APART
        else one
        for one in attempts
    )


def with_real_losses(
    attempts: Sequence[ExportedAttempt], saves_every: timedelta | None
) -> tuple[ExportedAttempt, ...]:
    """No attempt lost more at its end than it had trained since its last save.

    A loss is exported as far as checkpoints were seen, and they are looked at every five minutes: it is too
    large, or 0 where none was seen. What interruptions lost is in ``interruption_losses``.

    Args:
        attempts: Of one job.
        saves_every: As programs of its team do; None: not known.
    """
    if saves_every is None:
        return tuple(replace(one, lost=min(one.lost, intervals(one)[-1])) for one in attempts)
    done, found = _NOTHING, list[ExportedAttempt]()
    for one in attempts:
        *interrupted, last = intervals(one)
        for length in interrupted:
            done = max((done + length) // saves_every * saves_every, done)
        since_save = min((done + last) % saves_every, last)
        is_likely = not one.lost or since_save <= one.lost + CLOCKS_APART
        real = replace(one, lost=since_save if is_likely else one.lost)
        done += max(last - real.lost, _NOTHING)
        found.append(real)
    return tuple(found)


def with_certain_losses(
    attempts: Sequence[ExportedAttempt], read_at: datetime
) -> tuple[ExportedAttempt, ...]:
    """Of a job that is over: no attempt lost more than was trained again after it."""
    after, found = _NOTHING, list[ExportedAttempt]()
    for one in reversed(attempts):
        length = trained(one, read_at) if found else _held(one, read_at)
        certain = replace(one, lost=min(one.lost, after)) if found else one
        after += max(length - certain.lost, _NOTHING) if found else length
        found.append(certain)
    return tuple(reversed(found))


def counted(attempts: Sequence[ExportedAttempt], read_at: datetime) -> timedelta:
    """Training that did not have to be done again; of the last attempt all of it."""
    earlier = (max(trained(one, read_at) - one.lost, _NOTHING) for one in attempts[:-1])
    return sum(earlier, _held(attempts[-1], read_at) if attempts else _NOTHING)


def least_needed(attempts: Sequence[ExportedAttempt], read_at: datetime) -> timedelta:
    """Of a job that is not over: what it had done at the end of any attempt was not enough, lost or not."""
    done, most = _NOTHING, _NOTHING
    for one in attempts:
        length = trained(one, read_at)
        most = max(most, done + length)
        done += max(length - one.lost, _NOTHING)
    return most


def _held(last: ExportedAttempt, read_at: datetime) -> timedelta:
    """From Training to its end with the upload; unless it was stopped or its interruptions are not known."""
    if last.statuses and last.ended_at is not None:
        return trained(last, read_at) + _uploaded(last, last.ended_at)
    if last.training_since is None or last.interruptions:
        return trained(last, read_at)
    return max((last.ended_at or read_at) - last.training_since, _NOTHING)


def _uploaded(last: ExportedAttempt, ended_at: datetime) -> timedelta:
    """From the end of its training to its end; none where somebody stopped it."""
    if STOPPING in dict(last.statuses):
        return _NOTHING
    ends = [at for (status, _), (_, at) in pairwise(last.statuses) if status == TRAINING]
    return ended_at - last.started_at - ends[-1] if ends else _NOTHING


def cold_start_of(attempts: Sequence[ExportedAttempt], *, is_over: bool) -> timedelta | None:
    """Claim to Training of the first attempt on new instances; None: there was none.

    Of a job that ended before it trained: how long it held its instances.
    """
    for one in attempts:
        if one.training_since is not None and not one.warm_start:
            return max(one.training_since - one.started_at, _NOTHING)
    if not is_over or not attempts or any(one.training_since for one in attempts):
        return None
    last = attempts[-1]
    return None if last.ended_at is None else max(last.ended_at - last.started_at, _NOTHING)


def breaks_of(
    attempts: Sequence[ExportedAttempt], failures: Collection[str], losses: Sequence[InterruptionLoss]
) -> Iterator[Break]:
    """Failures that the job came back from, and interruptions of spot instances.

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
    """Of each interruption of spot instances: what came after the last save, as a replay works it out."""
    after = sum((sum(intervals(one), _NOTHING) for one in attempts), _NOTHING)
    after += max((_uploaded(one, one.ended_at) for one in attempts[-1:] if one.ended_at), default=_NOTHING)
    found, done = list[InterruptionLoss](), _NOTHING
    for attempt in attempts:
        *interrupted, last = intervals(attempt)
        for length in interrupted:
            after -= length
            saved = max((done + length) // saves_every * saves_every, done) if saves_every else _NOTHING
            unsaved = done + length - saved
            saved_since = saves_every is not None and unsaved > after
            found.append(InterruptionLoss(after if saved_since else unsaved, saved_since))
            done += length - found[-1].again
        after -= last
        done += max(last - attempt.lost, _NOTHING)
    return found


def saving_interval(attempts: Sequence[ExportedAttempt]) -> timedelta | None:
    """The interval that explains best what each stop lost; None: no attempt was stopped while it trained.

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
    """By team, where its programs save alike."""
    teams: defaultdict[str, list[Sequence[ExportedAttempt]]] = defaultdict(list)
    for one in exported:
        if one.saves_checkpoints:
            teams[one.team].append(one.attempts)
    found = {team: common_interval(attempts) for team, attempts in teams.items()}
    return {team: every for team, every in found.items() if every is not None}


def common_interval(jobs: Iterable[Sequence[ExportedAttempt]]) -> timedelta | None:
    """The longest interval at whose multiples nearly all saves were; None: there is none.

    Programs of one team are often of one kind. A first attempt says when it saved last, or it lost less than
    it had trained, and saved last when it had trained for the rest.

    Args:
        jobs: The attempts of each job that saves.
    """
    firsts = [attempts[0] for attempts in jobs if attempts and not attempts[0].interruptions]
    saves = [save for one in firsts if (save := _last_save(one)) is not None]
    if len(saves) < LEAST_SAVES:
        return None
    last = max(saves)
    candidates = (last / number for number in range(1, last // SHORTEST_INTERVAL + 1))
    return next((_in_round_numbers(every, saves) for every in candidates if _fits(every, saves)), None)


def _in_round_numbers(every: timedelta, saves: Sequence[timedelta]) -> timedelta:
    """Clocks disagree by seconds, and people write minutes."""
    rounded = (round(every / unit) * unit for unit in _UNITS)
    return next((one for one in rounded if one and _fits(one, saves)), every)


def _last_save(first: ExportedAttempt) -> timedelta | None:
    """After how much training; None: not known, or before it trained."""
    if first.training_since is None:
        return None
    if first.checkpoint_at is not None:
        return (
            first.checkpoint_at - first.training_since if first.checkpoint_at > first.training_since else None
        )
    own = trained(first, first.ended_at or first.started_at)
    return own - first.lost if first.end == ReasonCode.PREEMPTION and _NOTHING < first.lost < own else None


def _fits(every: timedelta, saves: Sequence[timedelta]) -> bool:
    off = sum(min(saved % every, every - saved % every) > CLOCKS_APART for saved in saves)
    return off <= len(saves) * MOST_OFF


def _stops(attempts: Sequence[ExportedAttempt]) -> Iterator[tuple[timedelta, timedelta]]:
    """Of each attempt that the job came back from: its training up to then, and what of it was lost."""
    done = _NOTHING
    for one in attempts[:-1]:
        own = trained(one, one.ended_at or one.started_at)
        if own:
            yield done + own, min(one.lost, own)
        done += max(own - one.lost, _NOTHING)


def _candidates(seen: Sequence[tuple[timedelta, timedelta]]) -> Iterator[timedelta]:
    for whole, lost in seen:
        saved = whole - lost
        most = min(MOST_SAVES, saved // max(lost, timedelta(minutes=1)) or 1)
        yield from (saved / number for number in range(1, most + 1))


def _misses(every: timedelta, seen: Sequence[tuple[timedelta, timedelta]]) -> timedelta:
    """How far its losses are from the real ones; to the minute, as clocks do not agree to the second."""
    off = sum((abs(whole % every - lost) for whole, lost in seen), _NOTHING)
    return off // timedelta(minutes=1) * timedelta(minutes=1)
