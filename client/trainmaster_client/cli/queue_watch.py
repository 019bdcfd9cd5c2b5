"""``trainmaster queue --watch``: the queue again and again, through silences of the API."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NoReturn

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text
from trainmaster.core.jobs.spans import length

from trainmaster_client.cli.queue_table import pool_lines, queue_picture
from trainmaster_client.cli.screen import print_json_line
from trainmaster_client.errors import PASSING_ERRORS
from trainmaster_client.views.queue_model import QueueAnswers, queue_model


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True, kw_only=True)
class QueueWatch:
    """Looks each ``seconds`` until Ctrl-C. A terminal is painted over; a pipe gets one picture a look."""

    look: Callable[[], QueueAnswers]
    seconds: float
    to: Console
    as_json: bool
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = _now
    _seen: QueueAnswers = field(default_factory=QueueAnswers)
    _silent_since: datetime | None = None
    _silence: str = ""

    def run(self) -> NoReturn:
        """Watch the queue. The first look must succeed: its errors are those of ``trainmaster queue``."""
        self._seen = self.look()
        if self.as_json or not self.to.is_terminal or self.to.is_dumb_terminal:
            self._print_each()
        with Live(self._picture(self.to.height), console=self.to, auto_refresh=False) as live:
            while True:
                self._look_again()
                live.update(self._picture(self.to.height), refresh=True)

    def _print_each(self) -> NoReturn:
        while True:
            if not self.as_json:
                self.to.print(self._picture(None), no_wrap=True, overflow="ignore", crop=False)
            elif self._silent_since is None:
                print_json_line(self._seen.document)
            self._look_again()

    def _look_again(self) -> None:
        self.sleep(self.seconds)
        try:
            self._seen = self.look()
        except PASSING_ERRORS as error:
            self._silent_since = self._silent_since or self.now()
            self._silence = str(error)
        else:
            self._silent_since = None

    def _picture(self, height: int | None) -> RenderableType:
        """Draw the queue in ``height`` lines of the terminal; None takes as many as are needed."""
        now = self.now()
        model = queue_model(self._seen, now=now)
        summaries = pool_lines(model, self.to.width)
        above = [self._title(now), *summaries, *([Text()] if summaries else [])]
        below = [Text(model.more)] if model.more else []
        left = None
        if height is not None:
            left = max(height - len(self.to.render_lines(Group(*above, *below), pad=False)), 2)
        return Group(*above, queue_picture(model, to=self.to, lines=left), *below)

    def _title(self, now: datetime) -> Text:
        clock = f"{now.astimezone():%H:%M:%S}"
        if self._silent_since is None:
            return Text(f"{clock}  every {self.seconds:g} s, Ctrl-C to quit", style="dim")
        since = f"{self._silent_since.astimezone():%H:%M:%S}"
        silent = f"{clock}  nothing new since {since} ({length(now - self._silent_since)}): {self._silence}"
        return Text(silent, style="yellow")
