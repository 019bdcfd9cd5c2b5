"""Find kinds of jobs that little keeps from using each other's warm pools, and what that would have saved.

SageMaker gives a warm pool to the next job that has the same fields (``matching_fields``). Some of them a
pool of the policy can set for all its jobs: the role, the size of the volume, the network. Kinds of jobs that
differ in nothing else could be made alike. Fields that only the owner of a job can answer for, such as its
keys and its isolation, are left alone, and so are the type and number of instances.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import combinations
from types import MappingProxyType
from typing import Any

from trainmaster.core.planning.warm_history import LATEST_STARTS, KeyStart, WarmHistory
from trainmaster.core.planning.warm_worth import worth_of
from trainmaster.core.policy import WarmPool as WarmRules
from trainmaster.core.request.asked_shapes import ROLE, SECURITY_GROUPS, SUBNETS, VOLUME_SIZE

FEWEST = 2
"""Further warm starts from which on there is something to say: one may be luck."""
HANDED_ON = timedelta(minutes=5)
"""Longest time from an end to the start of a job that waited for just these instances: SageMaker takes a
minute or two to give up a warm pool of another kind. One that started later waited for something else."""
MOST_ADVICE = 20
"""Groups of one pool that are named, those that save most first."""
_NO_TIME = timedelta()


class Difference(StrEnum):
    """Name what keeps jobs from sharing warm pools, and a pool of the policy can make alike."""

    ROLE = "role"
    VOLUME = "volume"
    NETWORK = "network"


FIELDS: Mapping[Difference, tuple[str, ...]] = MappingProxyType(
    {
        Difference.ROLE: (ROLE,),
        Difference.VOLUME: (VOLUME_SIZE,),
        Difference.NETWORK: (SUBNETS, SECURITY_GROUPS),
    }
)
"""Fields of a request by difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmKind:
    """Jobs of one pool that can use each other's warm pools."""

    fields: Mapping[str, Any]
    """``matching_fields`` of one of them, which are those of all."""
    history: WarmHistory

    @property
    def teams(self) -> tuple[str, ...]:
        """Teams of its starts, as far as they are recorded."""
        return tuple(sorted({start.team for start in self.history.starts if start.team is not None}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """Count the starts of a record that find instances warm, if they are kept as the policy says."""

    warm: int
    """Starts that found instances of their kind."""
    idle: timedelta
    """Time in which instances waited for them, or in vain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingAdvice:
    """Kinds of jobs that could use each other's warm pools, and what that would have changed."""

    differ_in: tuple[Difference, ...]
    """One or two differences, and the kinds differ in all of them."""
    kinds: tuple[WarmKind, ...]
    since: datetime
    """Instant from which on the starts and ends of all kinds are known."""
    starts: int
    """Their starts since then."""
    apart: Reuse
    """The kinds as they are."""
    together: Reuse
    """The same starts and ends, had they been of one kind."""
    saved_by_start: timedelta
    """Start-up that a warm pool saves."""

    @property
    def saves(self) -> timedelta:
        """Start-up that is saved, on each instance of a job."""
        return (self.together.warm - self.apart.warm) * self.saved_by_start

    @property
    def idles(self) -> timedelta:
        """Further time that instances are idle; negative if they are idle for less."""
        return self.together.idle - self.apart.idle

    @property
    def is_worth_it(self) -> bool:
        return self.together.warm - self.apart.warm >= FEWEST and self.saves > max(self.idles, _NO_TIME)


def sharing_advice(
    kinds: Sequence[WarmKind], rules: WarmRules, *, now: datetime
) -> tuple[SharingAdvice, ...]:
    """Return the groups of kinds that should be made alike, those that save most first.

    A group with two differences is named only if it saves more than all groups with one of them together.

    Args:
        kinds: All kinds of jobs of one pool.
        rules: Its rules about warm pools.
        now: Instant of the question.
    """
    single = [
        advice for difference in Difference for advice in _of_differences((difference,), kinds, rules, now)
    ]
    double = [
        advice
        for pair in combinations(Difference, 2)
        for advice in _of_differences(pair, kinds, rules, now)
        if advice.saves > sum((part.saves for part in single if _is_part(part, advice)), _NO_TIME)
    ]
    return tuple(sorted((*single, *double), key=lambda advice: -advice.saves)[:MOST_ADVICE])


def _of_differences(
    differences: tuple[Difference, ...], kinds: Iterable[WarmKind], rules: WarmRules, now: datetime
) -> Iterator[SharingAdvice]:
    """Yield the groups whose kinds are alike in all but these differences, and differ in each of them."""
    free = {name for difference in differences for name in FIELDS[difference]}
    alike: defaultdict[str, list[WarmKind]] = defaultdict(list)
    for kind in kinds:
        rest = {name: value for name, value in kind.fields.items() if name not in free}
        alike[json.dumps(rest, sort_keys=True)].append(kind)
    for group in alike.values():
        if all(_differ(group, difference) for difference in differences):
            advice = _advice(differences, group, rules, now)
            if advice.is_worth_it:
                yield advice


def _differ(group: Iterable[WarmKind], difference: Difference) -> bool:
    return len({json.dumps([kind.fields[name] for name in FIELDS[difference]]) for kind in group}) > 1


def _is_part(part: SharingAdvice, whole: SharingAdvice) -> bool:
    return set(part.differ_in) <= set(whole.differ_in) and all(kind in whole.kinds for kind in part.kinds)


def _advice(
    differences: tuple[Difference, ...], group: Sequence[WarmKind], rules: WarmRules, now: datetime
) -> SharingAdvice:
    since = _known_since([kind.history for kind in group], now)
    apart = [_later(kind.history, since) for kind in group]
    together = _merged(apart)
    reuses = [_reuse(history, rules, now) for history in apart]
    return SharingAdvice(
        differ_in=differences,
        kinds=tuple(group),
        since=since,
        starts=len(together.starts),
        apart=Reuse(
            warm=sum(reuse.warm for reuse in reuses), idle=sum((reuse.idle for reuse in reuses), _NO_TIME)
        ),
        together=_reuse(together, rules, now),
        saved_by_start=together.saved_by_start,
    )


def _known_since(histories: Sequence[WarmHistory], now: datetime) -> datetime:
    """Return from when on every start and end is recorded: a full list has lost the older ones."""
    lists = [
        times
        for history in histories
        for times in ([start.at for start in history.starts], list(history.ends))
        if times
    ]
    full = [min(times) for times in lists if len(times) >= LATEST_STARTS]
    return max(full) if full else min((min(times) for times in lists), default=now)


def _later(history: WarmHistory, since: datetime) -> WarmHistory:
    return WarmHistory(
        starts=tuple(start for start in history.starts if start.at >= since),
        ends=tuple(ended_at for ended_at in history.ends if ended_at >= since),
        cold=history.cold,
        warm=history.warm,
    )


def _merged(histories: Iterable[WarmHistory]) -> WarmHistory:
    """Return the record that the kinds would have if they were one."""
    several = list(histories)
    starts = (start for history in several for start in history.starts)
    ends = (ended_at for history in several for ended_at in history.ends)
    return WarmHistory(
        starts=tuple(sorted(starts, key=lambda start: start.at, reverse=True)),
        ends=tuple(sorted(ends, reverse=True)),
        cold=tuple(length for history in several for length in history.cold),
        warm=tuple(length for history in several for length in history.warm),
    )


def _reuse(history: WarmHistory, rules: WarmRules, now: datetime) -> Reuse:
    """Give each end, in order, the first later start that it would have been kept for."""
    keep = _kept_for(history, rules, now)
    left = sorted(history.starts, key=lambda start: start.at)
    warm, idle = 0, _NO_TIME
    for ended_at in sorted(history.ends):
        waits = ((start, _waited(start, ended_at, keep)) for start in left)
        taker = next(((start, wait) for start, wait in waits if wait is not None), None)
        if taker is None:
            idle += min(keep, now - ended_at)
            continue
        left.remove(taker[0])
        warm, idle = warm + 1, idle + taker[1]
    return Reuse(warm=warm, idle=idle)


def _kept_for(history: WarmHistory, rules: WarmRules, now: datetime) -> timedelta:
    """Return how long instances are kept after an end although no waiting job can use them."""
    if rules.retain is not None:
        return min(rules.retain, rules.max_idle)
    return worth_of(history, idle=_NO_TIME, horizon=rules.max_idle, now=now).keep_for


def _waited(start: KeyStart, ended_at: datetime, keep: timedelta) -> timedelta | None:
    """Return how long instances that came free then are idle before this start; None if it finds none.

    A job that waited already takes them at once. One that came back to the queue is taken as if it arrived
    when it started, as nobody knows whether it could have started before.
    """
    if start.at < ended_at:
        return None
    if start.ready is not None and start.ready <= ended_at:
        return _NO_TIME if start.at - ended_at <= HANDED_ON else None
    wait = (start.ready or start.at) - ended_at
    return wait if wait <= keep else None
