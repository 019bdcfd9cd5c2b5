"""What attempts tell of a job's training: how much counted, what broke it off, how often it saves."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster_client.simulate.past_jobs import INTERRUPTED, Break
from trainmaster_client.simulate.sources.export_lines import ExportedAttempt

USUAL_INTERVAL = timedelta(minutes=30)
"""Between checkpoints, where no job tells anything."""
LEAST_SAVES = 2
"""So many jobs tell the interval of a team."""
SHORTEST_INTERVAL = timedelta(minutes=1)
CLOCKS_APART = timedelta(seconds=3)
"""Of training, SageMaker and S3."""
MOST_OFF = 0.1
"""Share of saves that may not fit: of another program, or made by hand."""
MOST_SAVES = 1000
"""In one attempt, when its interval is looked for."""
_NOTHING = timedelta()


def trained(attempt: ExportedAttempt, read_at: datetime) -> timedelta:
    """Up to ``read_at`` where it still trained then; without its time in Stopping where that is known."""
    if attempt.trained is not None:
        return attempt.trained
    if attempt.training_since is None:
        return _NOTHING
    return max((attempt.ended_at or read_at) - attempt.training_since, _NOTHING)


def with_real_losses(
    attempts: Sequence[ExportedAttempt], saves_every: timedelta | None
) -> tuple[ExportedAttempt, ...]:
    """No attempt lost more than it had trained since its last save.

    A loss is exported as far as checkpoints were seen, and they are looked at every five minutes: it is too
    large, or 0 where none was seen.

    Args:
        attempts: Of one job.
        saves_every: As programs of its team do; None: not known.
    """
    if saves_every is None:
        return tuple(attempts)
    done, found = _NOTHING, list[ExportedAttempt]()
    for one in attempts:
        own = trained(one, one.ended_at or one.started_at)
        since_save = min((done + own) % saves_every, own)
        real = replace(one, lost=min(one.lost, since_save) if one.lost else since_save)
        done += max(own - real.lost, _NOTHING)
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


def _held(last: ExportedAttempt, read_at: datetime) -> timedelta:
    """From Training to its end, upload included, unless interruptions were in between."""
    if last.training_since is None or last.interruptions:
        return trained(last, read_at)
    return max((last.ended_at or read_at) - last.training_since, _NOTHING)


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


def breaks_of(attempts: Sequence[ExportedAttempt], failures: Collection[str]) -> Iterator[Break]:
    """Failures that the job came back from, and interruptions of spot instances.

    Args:
        attempts: Of one job.
        failures: Reason codes of failed attempts.
    """
    since = _NOTHING
    for number, attempt in enumerate(attempts):
        *interrupted, last = intervals(attempt)
        for length in interrupted:
            yield Break(after=since + length, code=INTERRUPTED)
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


def repeated(attempts: Sequence[ExportedAttempt], saves_every: timedelta | None) -> timedelta:
    """Training that interruptions of spot instances made necessary again, as a replay works it out."""
    again, done = _NOTHING, _NOTHING
    for attempt in attempts:
        *interrupted, last = intervals(attempt)
        for length in interrupted:
            whole = done + length
            done = whole // saves_every * saves_every if saves_every else _NOTHING
            again += whole - done
        done += max(last - attempt.lost, _NOTHING)
    return again


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


def common_interval(jobs: Iterable[Sequence[ExportedAttempt]]) -> timedelta | None:
    """The longest interval at whose multiples nearly all saves were; None: there is none.

    Programs of one team are often of one kind. A first attempt that lost less than it had trained saved last
    when it had trained for the rest.

    Args:
        jobs: The attempts of each job that saves.
    """
    saves = [own - one.lost for one, own in _first_stops(jobs) if _NOTHING < one.lost < own]
    if len(saves) < LEAST_SAVES:
        return None
    last = max(saves)
    candidates = (last / number for number in range(1, last // SHORTEST_INTERVAL + 1))
    return next((every for every in candidates if _fits(every, saves)), None)


def _first_stops(
    jobs: Iterable[Sequence[ExportedAttempt]],
) -> Iterator[tuple[ExportedAttempt, timedelta]]:
    for attempts in jobs:
        if len(attempts) > 1:
            yield attempts[0], trained(attempts[0], attempts[0].ended_at or attempts[0].started_at)


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
