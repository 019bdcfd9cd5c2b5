"""A start estimate: the band through the waits of the futures that were drawn, and what drawing may cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median, pvariance

MOST_DRAWS = 40
MOST_LOOKS = 60_000
"""Jobs looked at in all passes of all futures, 5 to 7 us each as measured: less than half a second of CPU, so
that two forecasts fit into one answer and this count ends the work, not the clock."""
MOST_SHAPES = 250
"""Most lanes of jobs ahead: with more, a second of CPU does not see one future to its end. Source:
measured."""
MOST_RUNNING = 5000
"""Most running jobs: with more, every step of a future takes too long."""
HOUR, DAY = 3600.0, 24 * 3600.0
REACTION_SECONDS = 60.0
"""Time added to every wait of a future: what it decides at once takes a pass, the release of a warm pool,
a second victim. Source: measured, docs/benchmarks.md; between 60 and 90 makes no difference."""
ERROR_OF_AN_HOUR, ERROR_OF_A_DAY = 0.75, 0.3
"""Standard deviations of the logarithm of a wait that the futures do not show: people submit in bursts, and
the jobs of a burst are alike. A long wait averages that out. Source: fitted to some windows and checked on
others, docs/benchmarks.md."""
Z90 = 1.2816
"""Standard deviations from the middle of a normal distribution to its quantile of 90 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEstimate:
    """The band of a likely start: half of the drawn starts are before ``p50``, nine of ten before ``p90``."""

    p50: datetime
    p90: datetime


def band(waits: Sequence[timedelta], *, now: datetime) -> StartEstimate | None:
    """Fit a logarithmic normal distribution to the waits, made wider by what the model cannot know."""
    if not waits:
        return None
    logs = [math.log(wait.total_seconds() + REACTION_SECONDS) for wait in waits]
    middle = median(logs)
    # Variances of independent errors add up: that between the futures, and that of the model itself.
    spread = math.hypot(math.sqrt(pvariance(logs)), _model_error(middle))
    p50, p90 = (timedelta(seconds=math.exp(middle + z * spread)) for z in (0, Z90))
    return StartEstimate(p50=now + p50, p90=now + p90)


def _model_error(log_of_wait: float) -> float:
    """Return the error of the model, which falls with the logarithm of the wait, from an hour to a day."""
    part = (log_of_wait - math.log(HOUR)) / math.log(DAY / HOUR)
    return ERROR_OF_AN_HOUR + min(max(part, 0.0), 1.0) * (ERROR_OF_A_DAY - ERROR_OF_AN_HOUR)
