"""``trainmaster queue --watch``: the queue again and again, through silences of the API."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NoReturn

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from trainmaster_client.cli.queue_table import queue_picture, summary_lines
from trainmaster_client.cli.screen import print_json_line
from trainmaster_client.cli.silences import Freshness
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
    _fresh: Freshness = field(default_factory=Freshness)

    def run(self) -> NoReturn:
        """Watch the queue. The first look must succeed: its errors are those of ``trainmaster queue``."""
        self._seen = self.look()
        self._fresh.answered(now=self.now())
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
            elif not self._fresh.error:
                print_json_line(self._seen.document)
            self._look_again()

    def _look_again(self) -> None:
        self.sleep(self.seconds)
        try:
            self._seen = self.look()
        except PASSING_ERRORS as error:
            self._fresh.failed(error)
        else:
            self._fresh.answered(now=self.now())

    def _picture(self, height: int | None) -> RenderableType:
        """Draw the queue in ``height`` lines of the terminal; None takes as many as are needed."""
        now = self.now()
        model = queue_model(self._seen, now=now)
        summaries = summary_lines(model, self.to.width)
        above = [self._title(now), *summaries, *([Text()] if summaries else [])]
        below = [Text(model.further)] if model.further else []
        left = None
        if height is not None:
            left = max(height - len(self.to.render_lines(Group(*above, *below), pad=False)), 2)
        return Group(*above, queue_picture(model, to=self.to, lines=left), *below)

    def _title(self, now: datetime) -> Text:
        clock = f"{now.astimezone():%H:%M:%S}"
        if trouble := self._fresh.trouble(now=now):
            return Text(f"{clock}  {trouble}", style="yellow")
        return Text(f"{clock}  every {self.seconds:g} s, Ctrl-C to quit", style="dim")
