"""Computes what a replay costs: instances are billed from an attempt's start until they are free."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.core.costs.prices import PriceTable

from trainmaster_client.simulate.comparison.figures import HOUR_S, idle_s
from trainmaster_client.simulate.comparison.outcomes import JobOutcome
from trainmaster_client.simulate.engine.replays import Replay


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """USD at on-demand prices; spot counts as on-demand, its discount is not known."""

    jobs_usd: float
    idle_warm_usd: float
    lost_usd: float
    """Part of ``jobs_usd`` for training that had to be done again, and for stopping."""
    startup_usd: float
    """Part of ``jobs_usd`` for start-up."""
    by_team: Mapping[str, float]
    """``jobs_usd`` by team."""
    unpriced: tuple[str, ...]
    """Instance types without a price: what ran on them is in no sum."""

    @property
    def useful_usd(self) -> float:
        return max(0.0, self.jobs_usd - self.lost_usd - self.startup_usd)

    @property
    def total_usd(self) -> float:
        return self.jobs_usd + self.idle_warm_usd


def bill_of(replay: Replay, outcomes: Mapping[str, JobOutcome], prices: PriceTable) -> Bill:
    types = {interval.instance_type for interval in replay.attempts} | {
        interval.instance_type for interval in replay.warm
    }
    rates = {
        instance_type: float(price)
        for instance_type in types
        if (price := prices.usd_per_hour(instance_type)) is not None
    }
    by_team: dict[str, float] = defaultdict(float)
    lost = startup = 0.0
    for attempt in replay.attempts:
        rate = attempt.instances * rates.get(attempt.instance_type, 0.0) / HOUR_S
        by_team[outcomes[attempt.job].job.team] += (attempt.end_s - attempt.start_s) * rate
        lost += (attempt.lost_s + attempt.stopping_s) * rate
        startup += (attempt.train_s - attempt.start_s) * rate
    return Bill(
        jobs_usd=sum(by_team.values()),
        idle_warm_usd=sum(
            idle_s(interval) * interval.instances * rates.get(interval.instance_type, 0.0) / HOUR_S
            for interval in replay.warm
        ),
        lost_usd=lost,
        startup_usd=startup,
        by_team=dict(by_team),
        unpriced=prices.unpriced(types),
    )
