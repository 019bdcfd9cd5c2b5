"""``trainmaster top`` in this process: an API of plain data, calls that are answered at once, no clock."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from textual.pilot import Pilot
from trainmaster_client.api import ApiClient
from trainmaster_client.cli.full_screen.job_changes import TopOptions
from trainmaster_client.cli.full_screen.queue_app import QueueApp
from trainmaster_client.cli.silences import Connection

from tests.integration.client.fake_api import view

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
WIDTH, HEIGHT = 80, 24
POOL = {
    "name": "p5",
    "capacity": {"ml.p5.48xlarge": 2},
    "used": {"on-demand": {"ml.p5.48xlarge": 2}},
    "waiting": 3,
}
RUNNING = view("llama-7b-b", state="running", team="vision", started_at="2026-11-22T11:00:00Z", position=None)
WAITING = view("pytorch-training-2026-11-21-10-03-55-123", state="preempted", team="language", position=1)
OTHERS = view(None, team="speech", position=2, submitted_at=None, waiting=None)
ATTEMPT = {
    "attempt": 0,
    "training_job_name": "llama-7b-b",
    "status": "InProgress",
    "started_at": "2026-11-22T11:00:00Z",
    "last_checkpoint": "2026-11-22T11:48:00Z",
}


@dataclass(kw_only=True)
class FakeApi:
    queue: list[dict[str, Any]] = field(default_factory=lambda: [RUNNING, WAITING, OTHERS])
    arrays: list[dict[str, Any]] = field(default_factory=list)
    changes: list[tuple[Any, ...]] = field(default_factory=list)
    fail: Exception | None = None
    """Of every call."""
    refuse: Exception | None = None
    """Of changes."""
    region = "eu-west-1"

    def jobs(self, **_filters: Any) -> dict[str, Any]:
        return self._answer({"jobs": list(self.queue), **({"arrays": self.arrays} if self.arrays else {})})

    def pools(self) -> dict[str, Any]:
        return self._answer({"pools": [POOL]})

    def job(self, name: str) -> dict[str, Any]:
        (found,) = [one for one in self.queue if one["name"] == name]
        attempts = [ATTEMPT] if found["state"] == "running" else []
        return self._answer({**found, "attempts": attempts, "history": []})

    def cancel(self, name: str) -> dict[str, Any]:
        return self._changed(name, "cancel", state="stopping")

    def change(self, name: str, *, priority: int | None = None, held: bool | None = None) -> dict[str, Any]:
        return self._changed(name, "change", priority, held)

    def _changed(self, name: str, *what: Any, **fields: Any) -> dict[str, Any]:
        self.changes.append((name, *what))
        if self.refuse is not None:
            raise self.refuse
        return self._answer({**self.job(name), **fields})

    def _answer(self, document: dict[str, Any]) -> dict[str, Any]:
        if self.fail is not None:
            raise self.fail
        return document


class FakeLogs:
    """CloudWatch Logs with lines of one host, read to their end."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    def describe_log_streams(self, **asked: Any) -> dict[str, Any]:
        return {"logStreams": [{"logStreamName": f"{asked['logStreamNamePrefix']}algo-1-1700000000"}]}

    def get_log_events(self, **asked: Any) -> dict[str, Any]:
        begin = int(asked.get("nextToken", "f/0").removeprefix("f/"))
        events = [{"timestamp": 1, "message": line} for line in self.lines[begin:]]
        return {"events": events, "nextForwardToken": f"f/{len(self.lines)}", "nextBackwardToken": "b"}


@dataclass(slots=True, kw_only=True)
class Shown:
    """The screen, and what is behind it."""

    app: QueueApp
    pilot: Pilot[None]
    api: FakeApi
    clock: list[datetime]

    async def press(self, *keys: str) -> list[str]:
        for key in keys:
            await self.pilot.press(key)
        return await self.lines()

    async def lines(self) -> list[str]:
        """As they stand there, without the blanks at their ends."""
        await self.pilot.pause()
        strips = self.app.screen._compositor.render_strips()
        return ["".join(part.text for part in strip).rstrip() for strip in strips]

    async def settle(self) -> None:
        """Wait for the workers of Textual's own screens."""
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def later(self, seconds: float) -> list[str]:
        """The next look, so much later."""
        self.clock[0] += timedelta(seconds=seconds)
        self.app.action_refresh()
        return await self.lines()

    @property
    def notes(self) -> list[str]:
        return [note.message for note in self.app._notifications]


@asynccontextmanager
async def shown(
    api: FakeApi | None = None,
    *,
    logs: FakeLogs | None = None,
    logs_client: Callable[[], Any] | None = None,
    may_change: bool = True,
    in_background: Callable[[Callable[[], None]], None] = lambda work: work(),
    connect: Callable[[], ApiClient] | None = None,
) -> AsyncIterator[Shown]:
    api, clock = api or FakeApi(), [NOON]
    options = TopOptions(
        logs_client=logs_client or (lambda: logs or FakeLogs()),
        seconds=1e9,
        may_change=may_change,
        now=lambda: clock[0],
        in_background=in_background,
        zone=UTC,
    )
    app = QueueApp(Connection(connect or (lambda: cast(ApiClient, api))), options)
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        await pilot.pause()
        yield Shown(app=app, pilot=pilot, api=api, clock=clock)
