"""What a replay costs: instances are billed from an attempt's start until they are free."""

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
    """Of ``jobs_usd``: training that had to be done again, and stopping."""
    startup_usd: float
    """Of ``jobs_usd``."""
    by_team: Mapping[str, float]
    """Of ``jobs_usd``."""
    unpriced: tuple[str, ...]
    """Instance types without a price: what ran on them is in no sum."""

    @property
    def useful_usd(self) -> float:
        return max(0.0, self.jobs_usd - self.lost_usd - self.startup_usd)

    @property
    def total_usd(self) -> float:
        return self.jobs_usd + self.idle_warm_usd


def bill_of(replay: Replay, outcomes: Mapping[str, JobOutcome], prices: PriceTable) -> Bill:
    types = {one.instance_type for one in replay.attempts} | {one.instance_type for one in replay.warm}
    rates = {one: float(price) for one in types if (price := prices.usd_per_hour(one)) is not None}
    by_team: dict[str, float] = defaultdict(float)
    lost = startup = 0.0
    for one in replay.attempts:
        rate = one.instances * rates.get(one.instance_type, 0.0) / HOUR_S
        by_team[outcomes[one.job].job.team] += (one.end_s - one.start_s) * rate
        lost += (one.lost_s + one.stopping_s) * rate
        startup += (one.train_s - one.start_s) * rate
    return Bill(
        jobs_usd=sum(by_team.values()),
        idle_warm_usd=sum(
            idle_s(one) * one.instances * rates.get(one.instance_type, 0.0) / HOUR_S for one in replay.warm
        ),
        lost_usd=lost,
        startup_usd=startup,
        by_team=dict(by_team),
        unpriced=prices.unpriced(types),
    )
