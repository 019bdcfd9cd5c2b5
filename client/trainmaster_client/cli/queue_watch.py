"""``trainmaster queue --watch``: the queue painted again and again, through silences of the API."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NoReturn

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from trainmaster_client.api import Document
from trainmaster_client.cli.instants import length
from trainmaster_client.cli.queue_table import queue_picture
from trainmaster_client.cli.screen import print_json_line
from trainmaster_client.errors import ApiFailedError, ApiUnreachableError, TooManyRequestsError
from trainmaster_client.jobs.job_views import job_view

USUAL_SECONDS = 5.0
SHORTEST_SECONDS = 1.0
"""The API is asked no more often, whoever watches."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True, kw_only=True)
class QueueWatch:
    """Looks each ``seconds`` until Ctrl-C. A terminal is painted over; a pipe gets one picture a look."""

    look: Callable[[], Document]
    seconds: float
    to: Console
    as_json: bool
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = _now
    _seen: Document = field(default_factory=dict)
    _silent_since: datetime | None = None
    _silence: str = ""

    def run(self) -> NoReturn:
        """The first look must succeed: its errors are those of ``trainmaster queue``."""
        self._seen = self.look()
        if self.as_json or not self.to.is_terminal or self.to.is_dumb_terminal:
            self._print_each()
        with Live(self._picture(), console=self.to, auto_refresh=False) as live:
            while True:
                self._look_again()
                live.update(self._picture(), refresh=True)

    def _print_each(self) -> NoReturn:
        while True:
            if not self.as_json:
                self.to.print(self._picture())
            elif self._silent_since is None:
                print_json_line(self._seen)
            self._look_again()

    def _look_again(self) -> None:
        self.sleep(self.seconds)
        try:
            self._seen = self.look()
        except (ApiUnreachableError, ApiFailedError, TooManyRequestsError) as error:
            self._silent_since = self._silent_since or self.now()
            self._silence = str(error)
        else:
            self._silent_since = None

    def _picture(self) -> RenderableType:
        now = self.now()
        jobs = [job_view(one) for one in self._seen.get("jobs") or ()]
        more = [Text("There is more: --all shows the whole queue.")] if self._seen.get("next_token") else []
        return Group(self._title(now), queue_picture(jobs, now=now, to=self.to), *more)

    def _title(self, now: datetime) -> Text:
        clock = f"{now.astimezone():%H:%M:%S}"
        if self._silent_since is None:
            return Text(f"{clock}  each {self.seconds:g} s, Ctrl-C ends it", style="dim")
        since = f"{self._silent_since.astimezone():%H:%M:%S}"
        silent = f"{clock}  nothing new since {since} ({length(now - self._silent_since)}): {self._silence}"
        return Text(silent, style="yellow")
