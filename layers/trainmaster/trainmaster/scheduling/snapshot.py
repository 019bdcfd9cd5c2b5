"""What a pass knows about one pool: read once, then decided on."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from trainmaster.jobs import Capacity, JobState, Vector, epoch_ms

FOREVER = datetime(9999, 1, 1, tzinfo=UTC)
"""Until when a held job is parked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A queue entry: what ordering and placing need to know, and no more."""

    name: str
    ver: int
    team: str
    state: JobState
    vector: Vector
    priority: int
    score: int
    submitted_at: datetime
    not_before: datetime | None = None
    waiting_code: str | None = None
    """Code of the reason last written to the job."""

    @property
    def rank(self) -> tuple[int, str]:
        """The one total order: of starts, and of victims from the other end."""
        return (self.score, self.name)

    @property
    def parked_until_ms(self) -> int:
        """Where it stands among those that wait for an instant or for a person."""
        return epoch_ms(self.not_before or FOREVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A job that holds its instances."""

    name: str
    ver: int
    team: str
    state: JobState
    vector: Vector
    priority: int
    score: int
    claimed_at: datetime
    lease_until: datetime
    training_job_name: str
    known_to_sagemaker: bool
    """False until the answer of CreateTrainingJob is recorded."""
    training_since: datetime | None
    ends_by: datetime | None
    """When its instances are certain to be free at the latest; None before that is known."""
    stop_sent: bool
    preemptible: bool
    has_checkpoint: bool
    preemptions: int

    @property
    def rank(self) -> tuple[int, str]:
        return (self.score, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Instances kept free for the job that others were preempted for."""

    preemptor: str
    vector: Vector
    victims: tuple[str, ...]
    until: datetime | None = None
    """Set once the last victim has ended; then the hold dies by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One pool, as read at the start of a pass.

    ``waiting`` holds the heads of each lane (jobs that ask for the same thing), so its size depends
    on teams and shapes, never on how many jobs wait.
    """

    paused: bool = False
    used: Vector = field(default_factory=dict)
    holds: tuple[Hold, ...] = ()
    waiting: tuple[WaitingJob, ...] = ()
    due: tuple[WaitingJob, ...] = ()
    """Parked jobs whose back-off is over."""
    running: tuple[RunningJob, ...] = ()
    gone_preemptors: frozenset[str] = frozenset()
    """Owners of holds that are no longer waiting."""


def known_as(job: WaitingJob | RunningJob, *, to: str) -> str:
    """A job as team ``to`` may hear of it: names stay within their team."""
    return job.name if job.team == to else f"a job of team {job.team}"


def total(vectors: Iterable[Vector]) -> dict[Capacity, int]:
    """Sum of vectors."""
    counted: Counter[Capacity] = Counter()
    for vector in vectors:
        counted.update(vector)
    return dict(counted)
