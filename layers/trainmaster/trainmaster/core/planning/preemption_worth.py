"""Whether a preemption is worth it: the wait that it spares, against what it costs the jobs that it stops.

It spares the whole wait without a stop: the one so far, and the one that is expected. The preemptor's hour
counts ``OUTRANKS`` times as it is, because it is the more urgent one. Where its own start may end for want of
capacity (``start_records``), with that chance nothing is spared. As long as nothing is known of how long the
jobs train that hold what is lacking, each preemption is worth it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.core.planning.preemption import Chosen, Preemptor, work_lost
from trainmaster.core.planning.preemption_cost import PreemptionPrices
from trainmaster.core.planning.snapshot import RunningJob

OUTRANKS = 3.0
"""Factor by which an hour of the job that may preempt counts more than an hour of an equal."""
FARTHEST = timedelta(days=7)
"""Horizon within which the instant is sought at which a preemption becomes worth it."""
_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
_FIRST_TRY = timedelta(minutes=15)
_CLOSE = timedelta(seconds=10)
_NO_TIME = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionQuote:
    """Weigh what one preemption spares its preemptor against what it costs its victims, now and later."""

    prices: PreemptionPrices
    chosen: Chosen
    value_per_hour: float
    """Weighted instance-hours that an hour of the preemptor's wait counts for."""
    waited: timedelta
    """Wait so far, without the time in which the job trained in earlier attempts."""
    wait: timedelta
    """Wait expected from now on if no job is stopped."""
    no_price_from: datetime | None = None
    """Instant from which no price is asked of the preemptor; None if one always is."""
    is_served: float = 1.0
    """Probability that the preemptor's start then trains, as far as capacity goes."""

    def is_worth(self, *, later: timedelta) -> bool:
        if self.prices.is_small(self.chosen, later=later):
            return True
        left = max(self.wait - later, _NO_TIME)
        spared = self.is_served * self.value_per_hour * ((self.waited + later + left) / _HOUR)
        return spared >= self.prices.of_all(self.chosen, wait=left, later=later)

    def worth_at(self) -> datetime | None:
        """Return by when it is worth it; None if that is beyond ``FARTHEST``."""
        # Double the time until it is worth it, then halve the interval in which that happens.
        before, after = _NO_TIME, _FIRST_TRY
        while not self.is_worth(later=after):
            before, after = after, 2 * after
            if after > FARTHEST:
                return None
        while after - before > _CLOSE:
            middle = before + (after - before) / 2
            if self.is_worth(later=middle):
                after = middle
            else:
                before = middle
        return self.prices.now + after


@dataclass(frozen=True, slots=True, kw_only=True)
class NotWorth:
    """A preemption that would cost more than it spares."""

    quote: PreemptionQuote

    @property
    def victims(self) -> tuple[RunningJob, ...]:
        return self.quote.chosen.victims

    @property
    def lost(self) -> timedelta:
        """Instance time of the victims' work that is not saved."""
        now = self.quote.prices.now
        return sum(
            (sum(victim.vector.values()) * work_lost(victim, now=now) for victim in self.victims), _NO_TIME
        )

    @property
    def wastes_a_start(self) -> bool:
        """Whether a victim has not trained for ``SETTLED`` yet."""
        return any(self.quote.prices.has_just_begun(victim) for victim in self.victims)

    @property
    def is_repeated(self) -> bool:
        """Whether a victim was stopped within the last day, and is still protected for that."""
        return any(self.quote.prices.is_protected(victim) for victim in self.victims)

    @property
    def wait(self) -> timedelta:
        """Whole wait of the preemptor if no job is stopped: so far, and as expected from now on."""
        return self.quote.waited + self.quote.wait

    @property
    def until(self) -> datetime | None:
        """When the victims are stopped if all continues as it is; None: that is beyond ``FARTHEST``."""
        instants = (self.quote.worth_at(), self.quote.no_price_from)
        return min((full_minute_after(at) for at in instants if at is not None), default=None)


def price_refusal(
    prices: PreemptionPrices, preemptor: Preemptor, chosen: Chosen, *, reclaims: bool
) -> NotWorth | None:
    """Return why the victims are not stopped for the preemptor; None if it is worth it.

    Args:
        prices: Those of the pool.
        preemptor: A job that does not fit.
        chosen: The victims that cost least.
        reclaims: Whether it takes back its team's quota: then it weighs no less than any victim.
    """
    if prices.ends.are_guessed(chosen.short):
        return None
    quote = _quote(prices, preemptor, chosen, reclaims=reclaims)
    return None if quote.is_worth(later=_NO_TIME) else NotWorth(quote=quote)


def _quote(
    prices: PreemptionPrices, preemptor: Preemptor, chosen: Chosen, *, reclaims: bool
) -> PreemptionQuote:
    job = preemptor.job
    priorities = [victim.priority for victim in chosen.victims] if reclaims else []
    return PreemptionQuote(
        prices=prices,
        chosen=chosen,
        value_per_hour=OUTRANKS
        * prices.weight(max([job.priority, *priorities]))
        * sum(preemptor.shape.vector.values()),
        waited=prices.waited(job),
        wait=prices.ends.wait(chosen.short),
        no_price_from=prices.no_price_from(job),
        is_served=1 - prices.start_records.chance_of(preemptor.shape.vector, now=prices.now),
    )


def full_minute_after(at: datetime) -> datetime:
    """Return the first full minute at or after an instant: pools are woken each minute."""
    full = at.replace(second=0, microsecond=0)
    return full if full == at else full + _MINUTE
