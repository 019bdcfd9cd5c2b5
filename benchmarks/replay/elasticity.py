"""Elasticity of a job of a trace: the widths that it can run at, and how fast it trains at each."""

from dataclasses import dataclass
from enum import Enum, auto
from math import log2

from trainmaster.core.jobs.widths import Widths
from trainmaster_client.simulate.engine.past_jobs import PastWidths


@dataclass(frozen=True, slots=True, kw_only=True)
class Elasticity:
    widths: Widths
    """The least is the width that the trace has."""
    per_doubling: float
    """Speed-up by twice the instances; deciders may not see this."""

    def speed(self, width: int) -> float:
        """Return the speed at a width, as a multiple of that at the least."""
        return float(self.per_doubling ** log2(width / self.widths.least))

    @property
    def most_speed(self) -> float:
        return self.speed(self.widths.largest)

    def useful_share(self, width: int) -> float:
        """Return the part of the instances' time that the least width would have needed for the same work."""
        return self.speed(width) * self.widths.least / width

    def as_past(self) -> PastWidths:
        speeds = {count: self.speed(count) / self.most_speed for count in self.widths.counts}
        return PastWidths(widths=self.widths, speeds=speeds)


class Asks(Enum):
    """Widths that the elastic jobs of a trace ask a decider for."""

    WIDTHS = auto()
    """Any of their widths: the tag ``trainmaster:elastic``."""
    LARGEST = auto()
    """Their largest width, as rigid jobs."""
    LEAST = auto()
    """Their least width, as rigid jobs."""
