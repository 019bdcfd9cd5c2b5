"""What a twin did, as a stranger needs it to compute everything again: policy, exported history, starts."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from tests.e2e.plane import Plane, running_plane
from tests.scenarios.__main__ import Scenario
from tests.scenarios.stage import on_stage
from tests.simulate_twin.planned_jobs import PlannedHistory
from tests.simulate_twin.played_history import Player, training_role
from tests.simulate_twin.recorded_starts import creations

BEGINS = datetime(2026, 10, 5, tzinfo=UTC)
"""A Monday. Where the clock of a planned history begins."""
_LONGEST = timedelta(days=30, hours=23)
"""The API exports 31 days at once."""
_A_MOMENT = timedelta(minutes=1)
_GOES_ON_S = 180
"""A story ends with what it waited for, often a start: a replay is given the time to come to it as well."""
NEXT_PAGE_HEADER = "trainmaster-next-token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    name: str
    policy: Mapping[str, Any]
    read_at: str
    """The twin's clock, when the history was exported."""
    exported: Sequence[str]
    """Lines of GET /history/export."""
    creations: Sequence[Mapping[str, Any]]
    """Of the journal, each CreateTrainingJob of the scheduler that the twin took."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def played(history: PlannedHistory) -> Recording:
    """Plays planned jobs to their end on a twin of its own."""
    roles = ",".join(sorted({training_role(job.team) for job in history.jobs}))
    clock = ("--clock", "manual", "--speed", f"{history.speed:g}", "--start", BEGINS.isoformat())
    options = (*clock, "--parameter", f"TrainingRoleArns={roles}")
    with _folder() as folder, running_plane(folder, *options, policy=history.policy) as plane:
        Player(plane=plane, folder=folder, history=history, begins=BEGINS).play()
        return _recording(history.name, history.policy, plane)


def told(scenario: Scenario) -> Recording:
    """A story of ``tests.scenarios``, to its end and three minutes on."""
    with _folder() as folder, on_stage(folder, scenario.policy, speed=scenario.speed) as stage:
        scenario.story(stage)
        stage.plane.control("/clock", {"advance_seconds": _GOES_ON_S})
        return _recording(scenario.name, scenario.policy, stage.plane)


@contextmanager
def _folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="trainmaster-simulate-") as folder:
        yield Path(folder)


def _recording(name: str, policy: Mapping[str, Any], plane: Plane) -> Recording:
    clock = plane.control("/clock", {"advance_seconds": 0})["clock"]
    return Recording(
        name=name,
        policy=policy,
        read_at=clock,
        exported=list(_exported(plane, datetime.fromisoformat(clock))),
        creations=creations(plane.twin.records()),
    )


def _exported(plane: Plane, now: datetime) -> Iterator[str]:
    """Page after page."""
    month = now.replace(microsecond=0)
    period = {"from": (month - _LONGEST).isoformat(), "to": (month + _A_MOMENT).isoformat()}
    token: str | None = None
    while True:
        query = period | ({} if token is None else {"next_token": token})
        text = "&".join(f"{key}={quote(value, safe='')}" for key, value in sorted(query.items()))
        answer = plane.call("GET", f"/history/export?{text}")
        assert answer.status == 200, answer.body
        yield from answer.body.decode().splitlines()
        token = answer.headers.get(NEXT_PAGE_HEADER)
        if token is None:
            return
