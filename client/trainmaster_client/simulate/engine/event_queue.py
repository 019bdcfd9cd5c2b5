"""Orders what is to come in a replay by the second; within a second, by when it was put down."""

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from heapq import heappop, heappush
from typing import NamedTuple, Self

MINUTE_S = 60
"""``reconcile`` runs this often, in seconds, and wakes every pool."""

LONGEST_WAIT_S = 32 * 24 * 3600
"""Seconds that a queue may wait for its calendar: as far ahead as the plane knows it."""


class What(Enum):
    SUBMITTED = auto()
    TRAINS = auto()
    """The attempt begins to train, also again after a spot interruption."""
    SECONDARY = auto()
    """The secondary status changes on the way (Downloading, Uploading): the event wakes a pass."""
    OVER = auto()
    """Training has come to an end by itself, as the attempt's run has it."""
    STOPPING = auto()
    """The secondary status of an attempt that is being stopped changes on the way: it wakes a pass."""
    STOPPED = auto()
    WAITED_TOO_LONG = auto()
    """MaxWaitTimeInSeconds of a spot attempt."""
    WITHDRAWN = auto()
    RELEASED = auto()
    """A user releases an array that equal failures have held."""
    MINUTE = auto()
    """The minute at which ``reconcile`` runs."""


class Event(NamedTuple):
    second: float
    number: int
    """Number in the order in which events were put down."""
    what: What
    pool: str
    job: str = ""
    serial: int = 0
    """Serial of the run that the event belongs to: by then it may be another run."""


@dataclass(slots=True, kw_only=True)
class EventQueue:
    """The clock of a replay, in seconds since the beginning of its history, to the millisecond."""

    now: float = 0
    events: list[Event] = field(default_factory=list)
    """Heap of the events to come."""
    count: int = 0
    """Number of all events that were ever put down."""
    create_s: float = 0
    """Second from which the account may create another training job."""
    news: int = 0
    """Events to come that are not the minutes of ``reconcile``."""

    @property
    def has_news(self) -> bool:
        """Tell whether something is to come beside the minutes."""
        return self.news > 0

    def put(self, second: float, what: What, pool: str, job: str = "", serial: int = 0) -> None:
        self.count += 1
        self.news += what is not What.MINUTE
        heappush(self.events, Event(second, self.count, what, pool, job, serial))

    def take(self, *, until: float | None = None) -> Event | None:
        """Take the next event and move the clock to it; None if nothing is to come until then."""
        if not self.events or (until is not None and self.events[0].second > until):
            return None
        event = heappop(self.events)
        self.now = event.second
        self.news -= event.what is not What.MINUTE
        return event

    def fork(self) -> Self:
        return replace(self, events=list(self.events))
