"""One job: what ``trainmaster show`` says of it, and its log as it grows."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Log, Static

from trainmaster_client.api import Document
from trainmaster_client.cli.full_screen.line_list import Line, LineList
from trainmaster_client.cli.full_screen.picture_source import LogReader
from trainmaster_client.cli.jobs import sheet
from trainmaster_client.http.answers import printable

HINTS = "d describe  l log  k cancel  p priority  h hold/release  esc back  times: UTC"
MOST_LOG_LINES = 10_000
"""Kept; older ones leave."""


class JobScreen(Screen[None]):
    """Shows what it is given; the app reads."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.leave", show=False),
    ]

    def __init__(self, name: str, *, part: str) -> None:
        super().__init__()
        self.job_name = name
        self.part = part
        """The visible part: ``sheet`` or ``log``."""
        self.log_reader: LogReader | None = None
        """Reader of the log; None makes it begin again."""

    def compose(self) -> ComposeResult:
        yield Static(Text(printable(self.job_name), style="bold", no_wrap=True), id="title")
        yield Static("", id="job-trouble")
        with ContentSwitcher(initial=self.part):
            yield LineList(id="sheet", has_cursor=False)
            yield Log(id="log", max_lines=MOST_LOG_LINES)
        yield Static(Text(HINTS, no_wrap=True))

    def on_mount(self) -> None:
        self.show_part(self.part)

    def show_part(self, part: str) -> None:
        self.part = part
        self.query_one(ContentSwitcher).current = part
        self.query_one(f"#{part}").focus()

    def show_job(self, document: Document, *, now: datetime, width: int) -> None:
        lines = [
            Line(text=part)
            for line in sheet(document, now=now)
            for part in Text(line).wrap(self.app.console, max(width, 20), tab_size=4)
        ]
        self.query_one("#sheet", LineList).show_lines(lines)

    def add_log(self, lines: Sequence[str], *, again: bool) -> None:
        log = self.query_one(Log)
        if again:
            log.clear()
        if lines:
            log.write_lines(lines)
        elif not log.line_count:
            self.show_trouble("It has printed nothing yet.")

    def show_trouble(self, text: str) -> None:
        trouble = self.query_one("#job-trouble", Static)
        trouble.update(Text(text, style="yellow"))
        trouble.display = bool(text)
