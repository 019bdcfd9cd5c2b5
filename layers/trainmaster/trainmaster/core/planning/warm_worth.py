"""Tell how long idle instances are worth their price although no waiting job can use them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.core.jobs.row_words import length
from trainmaster.core.planning.warm_history import Gap, WarmHistory

HALF_LIFE = timedelta(days=7)
"""A gap counts half as much as one that ended a week later."""
DOUBT = 1.0
"""Ends, added to the recorded ones, after which no job came: one lucky case proves little."""
_NO_TIME = timedelta()
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmWorth:
    """The worth of keeping the instances of one warm pool for longer."""

    keep_for: timedelta
    """How long it is kept from now on unless a job takes it over; 0: not any longer."""
    saves: timedelta
    """Start-up that the next job saves in it."""
    ends: int = 0
    """Number of the recorded ends after which instances were idle as long as these are by now."""
    sooner: int = 0
    """Number of the recorded ends after which a job came, if after none of them it came so late."""
    came: int = 0
    """Number of those ends after which a job came within ``keep_for``, or within ``saves`` if that is 0."""

    @property
    def text(self) -> str:
        """Say in a clause why it is kept or not."""
        if not self.ends:
            late = f"after none of the last {self.sooner} ends did a job come so late"
            return late if self.sooner else "no job is known to come that can use it"
        came = f"after {self.came} of the last {self.ends} ends that left such instances idle this long"
        within = length(self.keep_for or self.saves)
        return f"{came}, a job came within {within}; a warm start saves {length(self.saves)}"


NOT_KNOWN = WarmWorth(keep_for=_NO_TIME, saves=_NO_TIME)
"""Worth of a warm pool of a key without a record."""


def worth_of(history: WarmHistory | None, *, idle: timedelta, horizon: timedelta, now: datetime) -> WarmWorth:
    """Compare the start-up that a warm pool is likely to save with the instance time that it costs.

    With ``a`` the time that the pool has been idle and ``S`` the start-up that a warm start saves, keeping it
    until it has been idle for ``T`` gains, for each instance,

        gain(T) = sum over ends i with gap g_i > a of  w_i * (S - (g_i - a))  if g_i <= T
                                                      -w_i * (T - a)          else
                  - DOUBT * (T - a)

    seconds, divided by the sum of all weights. ``g_i`` is the time from an earlier end of the same key to the
    job that came next (``WarmHistory.gaps``), infinite where none came while it was watched for longer than
    ``a``; ``w_i`` halves every ``HALF_LIFE``. It is kept for the ``T`` with the largest gain, and not at all
    if no ``T`` gains anything: without a record nothing does. Instance-seconds are on both sides, so that
    neither the price nor the number of instances matters.

    Args:
        history: The record of the pool's warm key; None: there is none.
        idle: How long the pool has been idle.
        horizon: Longest time that instances are kept idle.
        now: Instant of the decision.
    """
    if history is None:
        return NOT_KNOWN
    saves = history.saved_by_start
    gaps = list(history.gaps(horizon=horizon, now=now))
    at_risk = [gap for gap in gaps if gap.length > idle]
    if not at_risk:
        return WarmWorth(keep_for=_NO_TIME, saves=saves, sooner=sum(gap.is_over for gap in gaps))
    keep_for = _best(_Odds.of(at_risk, idle=idle, now=now), saves / _SECOND, most=(horizon - idle) / _SECOND)
    kept = timedelta(seconds=keep_for)
    upto = idle + (kept or saves)
    came = sum(gap.is_over and gap.length <= upto for gap in at_risk)
    return WarmWorth(keep_for=kept, saves=saves, ends=len(at_risk), came=came)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Odds:
    """Chances, as weights, of when the next job comes."""

    arrivals: Sequence[tuple[float, float]]
    """Seconds from now and weight of each end after which a job came, the shortest first."""
    total: float
    """Sum of all weights, with those of the ends after which none came."""

    @classmethod
    def of(cls, gaps: Iterable[Gap], *, idle: timedelta, now: datetime) -> "_Odds":
        arrivals, total = [], DOUBT
        for gap in gaps:
            weight = 0.5 ** max((now - gap.ended_at) / HALF_LIFE, 0.0)
            total += weight
            if gap.is_over:
                arrivals.append(((gap.length - idle) / _SECOND, weight))
        return cls(arrivals=sorted(arrivals), total=total)


def _best(odds: _Odds, saves: float, *, most: float) -> float:
    """Return the seconds from now with the largest gain; 0 if none is above zero.

    Between two arrivals the gain only falls, so that it is largest at one of them.
    """
    best, best_gain = 0.0, 0.0
    came, paid = 0.0, 0.0
    for seconds, weight in odds.arrivals:
        if seconds > most:
            break
        came += weight
        paid += weight * seconds
        gain = came * saves - paid - (odds.total - came) * seconds
        if gain > best_gain:
            best, best_gain = seconds, gain
    return best
