"""The screen of ``trainmaster top``: its pages, reading them again and again, and what is painted."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.events import Resize
from textual.widgets import ContentSwitcher, Input, Static

from trainmaster_client.api import Document
from trainmaster_client.cli.full_screen.app_keys import HINTS, PAGES, AppKeys
from trainmaster_client.cli.full_screen.job_screen import JobScreen
from trainmaster_client.cli.full_screen.line_list import LineList
from trainmaster_client.cli.full_screen.picture_lines import detail, pool_page, queue_page, timeline_page
from trainmaster_client.cli.full_screen.picture_source import LogReader, PictureSource
from trainmaster_client.cli.full_screen.status_lines import Freshness, status_line
from trainmaster_client.cli.full_screen.top_options import TopOptions
from trainmaster_client.cli.timeline_chart import Window
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.jobs.timelines import Timeline
from trainmaster_client.views.queue_model import QueueAnswers, queue_model

SPANS = tuple(timedelta(hours=hours) for hours in (1, 3, 6, 12, 24, 72, 168, 720))
_USUAL_SPAN = SPANS.index(timedelta(hours=24))
TIMELINE_SECONDS = 30.0
"""A timeline costs the API more than a queue, and moves less."""

T = TypeVar("T")


class QueueApp(AppKeys):
    """Args: ``source`` reads and changes."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Static { height: auto; }
    #trouble, #job-trouble { max-height: 3; display: none; }
    #detail { height: 2; }
    ContentSwitcher, LineList, Log { height: 1fr; }
    LineList { scrollbar-size-horizontal: 0; scrollbar-size-vertical: 1; }
    #entry { display: none; height: 1; border: none; padding: 0; }
    """

    def __init__(self, source: PictureSource, options: TopOptions) -> None:
        super().__init__(options.in_background)
        self.source = source
        self.options = options
        self._span = _USUAL_SPAN
        self._view: QueueAnswers | None = None
        self._seen: tuple[Timeline, Window] | None = None
        self._fresh = {page: Freshness() for page in (*PAGES, "job")}

    def compose(self) -> ComposeResult:
        yield Static("", id="status")
        yield Static("", id="trouble")
        yield Static("", id="summary")
        with ContentSwitcher(initial="queue", id="pages"):
            yield LineList(id="queue")
            yield LineList(id="pools", has_cursor=False)
            yield LineList(id="timeline", has_cursor=False)
        yield Static("", id="detail")
        yield Input(id="entry", select_on_focus=False)
        yield Static(Text(HINTS, no_wrap=True, overflow="ellipsis"), id="hints")

    def on_mount(self) -> None:
        self.set_interval(self.options.seconds, self.refresh_picture)
        self.set_interval(TIMELINE_SECONDS, self.refresh_timeline)
        self.set_interval(1.0, self.paint_status)
        self.action_show_page(PAGES[0])
        self.refresh_picture()

    def on_resize(self, _resized: Resize) -> None:
        self.call_after_refresh(self.paint)
        self.refresh_timeline()

    # ---- reading

    def refresh_picture(self) -> None:
        """Read the queue and its pools again, and the job that is shown."""
        self._read("queue", self.source.queue, self._queue_came)
        if isinstance(self.screen, JobScreen):
            self._read_job(self.screen)
        self.paint_status()

    def refresh_timeline(self) -> None:
        if self.page != "timeline":
            return
        until = self.options.now()
        since = until - SPANS[self._span]
        width, zone = self.columns, self.options.zone
        window = Window(since=since, until=until, now=until, width=width, zone=zone)

        def came(seen: Timeline) -> None:
            self._seen = seen, window
            self.paint()

        self._read("timeline", lambda: self.source.timeline(since, until), came)

    def _read_job(self, screen: JobScreen) -> None:
        def came(document: Document) -> None:
            if screen not in self.screen_stack:
                return
            screen.show_trouble("")
            screen.show_job(document, now=self.options.now(), width=self.columns)
            if screen.part == "log":
                self._read_log(screen, document)

        self._read("job", lambda: self.source.job(screen.job_name), came, of=screen.job_name)

    def _read_log(self, screen: JobScreen, document: Document) -> None:
        def read() -> tuple[LogReader, list[str]]:
            reader = screen.log_reader or self.source.log()
            return reader, reader.new_lines(document)

        def came(answer: tuple[LogReader, list[str]]) -> None:
            again, (screen.log_reader, lines) = screen.log_reader is None, answer
            if screen in self.screen_stack:
                screen.add_log(lines, again=again)

        def failed(error: TrainmasterClientError) -> None:
            screen.log_reader = None  # the next look is the first one again
            if screen in self.screen_stack:
                screen.show_trouble(str(error))

        self.begin(f"log {screen.job_name}", read, came, failed)

    def _read(self, page: str, make: Callable[[], T], then: Callable[[T], None], *, of: str = "") -> None:
        """Read one page at a time: a request meanwhile gets the answer that is already awaited."""
        fresh = self._fresh[page]

        def came(answer: T) -> None:
            fresh.answered(now=self.options.now())
            then(answer)
            self.paint_status()

        def failed(error: TrainmasterClientError) -> None:
            fresh.failed(error)
            self.paint_status()

        if not fresh.asked_at:
            fresh.asked(now=self.options.now())
        self.begin(f"{page} {of}", make, came, failed)

    def _queue_came(self, view: QueueAnswers) -> None:
        self._view = view
        self.paint()

    # ---- painting

    @property
    def columns(self) -> int:
        """Width in columns, without the scroll bar."""
        return self.size.width - 1

    def paint(self) -> None:
        """Paint the visible page from what was read last."""
        if not self.is_shown:
            return
        now, width = self.options.now(), self.columns
        summary = Text("")
        if self._view is not None:
            shown = queue_page(queue_model(self._view, now=now), self.wanted, width=width)
            summary = shown.summary if self.page == "queue" else Text("")
            self._list("queue").show_lines(shown.lines)
            self._list("pools").show_lines(pool_page(self._view, now=now))
        if self._seen is not None:
            self._list("timeline").show_lines(timeline_page(*self._seen))
        self._static("summary").update(summary)
        self._static("summary").display = bool(summary.plain)
        self.paint_detail()
        self.paint_status()

    def paint_detail(self) -> None:
        selected = self._list("queue").selected if self.page == "queue" else ""
        rows = queue_model(self._view, now=self.options.now()).rows if self._view and selected else ()
        self._static("detail").update(detail(next((row for row in rows if row.name == selected), None)))
        self._static("detail").display = self.page == "queue"

    def paint_status(self) -> None:
        if not self.is_shown:
            return
        options, now = self.options, self.options.now()
        zone, may = options.zone, options.may_change
        here = now.astimezone(zone)
        line = status_line(region=self.source.region, seconds=options.seconds, may_change=may, now=here)
        self._static("status").update(Text(line, style="bold", no_wrap=True, overflow="ellipsis"))
        page = "queue" if self.page == "pools" else self.page
        trouble = self._fresh[page].trouble(now=now, zone=zone)
        self._static("trouble").update(Text(trouble, style="black on yellow"))
        self._static("trouble").display = bool(trouble)
        if isinstance(self.screen, JobScreen) and (trouble := self._fresh["job"].trouble(now=now, zone=zone)):
            self.screen.show_trouble(trouble)

    def _list(self, page: str) -> LineList:
        return self.screen_stack[0].query_one(f"#{page}", LineList)

    def _static(self, name: str) -> Static:
        return self.screen_stack[0].query_one(f"#{name}", Static)

    # ---- what keys want

    @property
    def chosen_job(self) -> str:
        if isinstance(self.screen, JobScreen):
            return self.screen.job_name
        return self._list("queue").selected if self.page == "queue" else ""

    def page_changed(self) -> None:
        self.screen_stack[0].query_one("#pages", ContentSwitcher).current = self.page
        self._list(self.page).focus()
        self.refresh_timeline()
        self.paint()

    def open_job(self, name: str, part: str) -> None:
        screen = JobScreen(name, part=part)
        self._fresh["job"] = Freshness()
        self.push_screen(screen, callback=None)
        self.call_after_refresh(self._read_job, screen)

    def read_part(self) -> None:
        if isinstance(self.screen, JobScreen):
            self._read_job(self.screen)

    def zoom(self, by: int) -> None:
        self._span = max(0, min(self._span + by, len(SPANS) - 1))
        self.refresh_timeline()

    def on_line_list_moved(self) -> None:
        if self.is_shown:
            self.paint_detail()

    def on_line_list_chosen(self) -> None:
        self.action_describe("sheet")
