"""What is to come in a replay, by the second; of what comes at one second what was put down first."""

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from heapq import heappop, heappush
from typing import NamedTuple, Self


class What(Enum):
    SUBMITTED = auto()
    TRAINS = auto()
    """Also again, after a spot interruption."""
    SECONDARY = auto()
    """Its secondary status changes on the way (Downloading, Uploading): the news wake a pass."""
    OVER = auto()
    """Its training has come to an end by itself: whatever the attempt's run says."""
    STOPPING = auto()
    """The secondary status of an attempt that is being stopped changes on the way: it wakes a pass."""
    STOPPED = auto()
    WAITED_TOO_LONG = auto()
    """MaxWaitTimeInSeconds of a spot attempt."""
    WITHDRAWN = auto()
    MINUTE = auto()
    """``reconcile`` runs."""


class Event(NamedTuple):
    second: float
    number: int
    """In the order in which they were put down."""
    what: What
    pool: str
    job: str = ""
    serial: int = 0
    """Of the run that it belongs to: it may be another one by then."""


@dataclass(slots=True, kw_only=True)
class EventQueue:
    """The clock of a replay, in seconds since the beginning of its history, to the millisecond."""

    now: float = 0
    events: list[Event] = field(default_factory=list)
    """A heap."""
    count: int = 0
    """Of all that was ever put down."""
    create_s: float = 0
    """From then on the account may create another training job."""
    news: int = 0
    """Of those to come, the ones that are no minutes."""

    @property
    def has_news(self) -> bool:
        """Something is to come beside the minutes."""
        return self.news > 0

    def put(self, second: float, what: What, pool: str, job: str = "", serial: int = 0) -> None:
        self.count += 1
        self.news += what is not What.MINUTE
        heappush(self.events, Event(second, self.count, what, pool, job, serial))

    def take(self, *, until: float | None = None) -> Event | None:
        """The next, and it is that second; None: nothing is to come by then."""
        if not self.events or (until is not None and self.events[0].second > until):
            return None
        event = heappop(self.events)
        self.now = event.second
        self.news -= event.what is not What.MINUTE
        return event

    def fork(self) -> Self:
        return replace(self, events=list(self.events))
