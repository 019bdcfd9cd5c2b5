"""The screen of ``trainmaster top``: keys, as in k9s, and pages that draw the queue's model."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

from rich.text import Text
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Input, Log, OptionList, Static
from textual.widgets.option_list import Option

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.full_screen.job_changes import NO_JOB, JobChanges, TopOptions
from trainmaster_client.cli.job_logs import log_follower
from trainmaster_client.cli.jobs import sheet
from trainmaster_client.cli.pools import pool_lines
from trainmaster_client.cli.queue_table import queue_lines, summary_lines
from trainmaster_client.cli.silences import Connection, Freshness
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.queue_reader import QueueReader
from trainmaster_client.views.fitted_tables import fitted_grid, whole_grid
from trainmaster_client.views.queue_model import NO_MATCH, QueueAnswers, QueueModel, queue_model
from trainmaster_client.views.queue_rows import Row

PAGES = ("queue", "pools", "sheet", "log")
"""The last two are of one job."""
HINTS = ": keys  / filter  d describe  l logs  k cancel  p priority  h hold  ? help"
MOST_SUMMARIES, MOST_LOG_LINES, LOG_TAIL = 4, 10_000, 500
"""Lines of pools above the queue, lines of a log that are kept, and that it begins with."""
T = TypeVar("T")


def _key(keys: str, action: str, what: str, shown: str = "") -> Binding:
    return Binding(keys, action, f"{shown or keys:<9} {what}", show=False)


class QueueApp(JobChanges):
    CSS = """
    Static { height: auto; }
    #trouble { max-height: 3; }
    #detail { height: 2; }
    ContentSwitcher, OptionList, VerticalScroll, Log { height: 1fr; }
    OptionList, OptionList:focus { border: none; padding: 0; text-wrap: nowrap; }
    OptionList, VerticalScroll { scrollbar-size: 0 1; background: transparent; }
    Input { display: none; height: 1; border: none; padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        _key("1", "show_page('queue')", "queue"),
        _key("2", "show_page('pools')", "pools"),
        _key("d", "describe('sheet')", "describe the job", "d enter"),
        _key("l", "describe('log')", "its log"),
        _key("escape", "leave", "back; shows all jobs again", "esc"),
        _key("slash", "filter", "filter the queue by any text", "/"),
        _key("r", "refresh", "refresh now"),
        _key("k,ctrl+d", "change('cancel')", "cancel the job, with --allow-changes", "k ctrl-d"),
        _key("p", "change('priority')", "change its priority, with --allow-changes"),
        _key("h", "change('hold')", "hold or release it, with --allow-changes"),
        _key("question_mark,colon", "command_palette", "this help", "? :"),
        _key("q", "quit", "quit"),
    ]
    page = PAGES[0]
    job = ""
    """Name of the job whose sheet or log is shown; empty if it is another page."""
    wanted = ""
    """Text that the queue is filtered by."""
    _answers: QueueAnswers | None = None
    _rows: tuple[Row, ...] = ()
    _above: Iterable[Text] = ()
    """Lines above the queue: its pools, what is filtered, the headings."""
    _read_log: Callable[[Document], list[str]] | None = None
    """Reads new lines of the job's log; None begins it again."""

    def __init__(self, connection: Connection, options: TopOptions) -> None:
        super().__init__(connection, options)
        self._region = connection.api.region
        self._reader = QueueReader(lambda: connection.api)
        self._fresh = {page: Freshness() for page in PAGES}

    def compose(self) -> ComposeResult:
        for name in ("status", "trouble", "summary"):
            yield Static("", id=name)
        with ContentSwitcher(initial="queue", id="pages"):
            yield OptionList(id="queue", markup=False)
            for name in ("pools", "sheet"):
                with VerticalScroll(id=name):
                    yield Static("", id=f"{name}-lines")
            yield Log(id="log", max_lines=MOST_LOG_LINES)
        yield Static("", id="detail")
        yield Input(placeholder="filter the queue", id="entry", select_on_focus=False)
        yield Static(Text(HINTS, no_wrap=True, overflow="ellipsis"))

    def on_mount(self) -> None:
        self.set_interval(self.options.seconds, self.action_refresh)
        self.set_interval(1.0, self.paint_status)
        self.action_show_page(PAGES[0])
        self.action_refresh()

    def on_resize(self) -> None:
        self.call_after_refresh(self.paint)

    def action_refresh(self) -> None:
        """Read the queue and its pools again, and the job that is shown."""

        def read(api: ApiClient) -> QueueAnswers:
            pools = api.pools().get("pools") or ()
            answers = QueueAnswers(document=self._reader.whole({}), pools=pools)
            queue_model(answers, now=self.options.now())  # where its shape is wrong, this read has failed
            return replace(answers, starts=self._reader.starts(answers.jobs))

        def came(answers: QueueAnswers) -> None:
            self._answers = answers
            self.paint()

        self._read("queue", read, came)
        if self.job:
            self._read_job(self.job)
        self.paint_status()

    def _read_job(self, name: str) -> None:
        def came(document: Document) -> None:
            if self.job == name:
                self._fill("sheet", sheet(document, now=self.options.now()), no_wrap=False)
                if self.page == "log":
                    add = partial(add_lines, self._read_log is None)
                    self._read("log", lambda _: self._new_lines(document), add, call=f"log {name}")

        def add_lines(is_begun_again: bool, lines: list[str]) -> None:  # noqa: FBT001  a partial's
            log = self._base.query_one(Log)
            if self.job == name:
                log = log.clear() if is_begun_again else log
                log.write_lines(lines if lines or log.line_count else ["It has printed nothing yet."])

        self._read("sheet", lambda api: api.job(name), came, call=f"job {name}")

    def _new_lines(self, document: Document) -> list[str]:
        self._read_log = self._read_log or log_follower(self.options.logs_client(), tail=LOG_TAIL)
        return self._read_log(document)

    def _read(
        self, page: str, make: Callable[[ApiClient], T], then: Callable[[T], None], *, call: str = ""
    ) -> None:
        """Read one page at a time: a request meanwhile gets the answer that is already awaited."""
        fresh = self._fresh[page]

        def came(answer: T) -> None:
            fresh.answered(now=self.options.now())
            then(answer)
            self.paint_status()

        def failed(error: TrainmasterClientError) -> None:
            fresh.failed(error)
            self._read_log = self._read_log if page != "log" else None  # the next look begins it again
            self.paint_status()

        fresh.asked_at = fresh.asked_at or self.options.now()
        self.begin(call or page, make, came, failed)

    def paint(self) -> None:
        """Paint what was read last."""
        if self.is_shown and self._answers is not None:
            model = queue_model(self._answers, now=self.options.now())
            self._paint_queue(model)
            self._fill("pools", pool_lines(model.pools))
            self.paint_status()

    def _paint_queue(self, model: QueueModel) -> None:
        """Paint the rows that contain the wanted text; the cursor stays on its job, else at its line."""
        width, queue, chosen = self.size.width - 1, self._base.query_one(OptionList), self._chosen_row
        self._rows = tuple(row for row in model.rows if self.wanted.casefold() in row.searched)
        grid = fitted_grid(self._rows, width) or whole_grid(self._rows, has_starts=False)
        head, *lines = queue_lines(grid, self._rows)
        at = queue.highlighted or 0
        queue.set_options(Option(line) for line in lines)
        names = [row.name for row in self._rows]
        if names:
            name = chosen.name if chosen else ""
            queue.highlighted = names.index(name) if name and name in names else min(at, len(names) - 1)
        above = summary_lines(model, width, most=MOST_SUMMARIES)
        if self.wanted:
            shown = f"{len(lines)} of {len(model.rows)} jobs have {self.wanted!r}; esc shows all"
            above.append(Text(shown, style="yellow", no_wrap=True))
        self._above = [*above, head if lines else Text(NO_MATCH if self.wanted else model.if_empty)]

    def paint_status(self) -> None:
        """Paint what stands around the page."""
        if not self.is_shown:
            return
        options, now = self.options, self.options.now()
        rights = "changes allowed" if options.may_change else "read-only"
        clock = f"{now.astimezone(options.zone):%H:%M:%S %Z}"
        line = f"trainmaster  {self._region}  {rights}  {clock}  every {options.seconds:g} s"
        self._show("status", Text(line, style="bold", no_wrap=True, overflow="ellipsis"))
        pages = PAGES[2:] if self.job else PAGES[:1]
        troubles = (self._fresh[page].trouble(now=now, zone=options.zone) for page in pages)
        self._show("trouble", Text(next(filter(None, troubles), ""), style="black on yellow"))
        title = Text(f"{printable(self.job)}  (times: UTC)", style="bold") if self.job else Text("")
        self._show("summary", Text("\n").join(self._above) if self.page == "queue" else title)
        row = self._chosen_row
        self._show("detail", Text(f"{row.name}: {', '.join(row.details[1:])}" if row and row.name else ""))
        self._base.query_one("#detail").display = self.page == "queue"

    def _show(self, name: str, text: Text) -> None:
        static = self._base.query_one(f"#{name}", Static)
        static.update(text)
        static.display = bool(text.plain)

    def _fill(self, page: str, lines: Iterable[str], *, no_wrap: bool = True) -> None:
        self._show(f"{page}-lines", Text("\n".join(lines), no_wrap=no_wrap))

    @property
    def _base(self) -> Screen[Any]:
        """The screen below any dialog."""
        return self.screen_stack[0]

    @property
    def _chosen_row(self) -> Row | None:
        at = self._base.query_one(OptionList).highlighted
        return self._rows[at] if self.page == "queue" and at is not None and at < len(self._rows) else None

    @property
    def chosen_job(self) -> str:
        row = self._chosen_row
        return row.name if row is not None and row.job is not None else self.job

    def on_option_list_option_highlighted(self) -> None:
        self.paint_status()

    def on_option_list_option_selected(self) -> None:
        self.action_describe("sheet")

    def action_show_page(self, page: str, job: str = "") -> None:
        if job != self.job:
            self._read_log, self._fresh["sheet"], self._fresh["log"] = None, Freshness(), Freshness()
            self._fill("sheet", [])
        self.page, self.job = page, job
        self._base.query_one("#pages", ContentSwitcher).current = page
        self._base.query_one(f"#{page}").focus()
        self.paint()
        if job:
            self._read_job(job)

    def action_describe(self, part: str) -> None:
        if job := self.chosen_job:
            self.action_show_page(part, job)
        else:
            self.say(NO_JOB, is_wrong=True)

    def action_leave(self) -> None:
        if self.page == "queue" and (self.wanted or self._base.query_one(Input).display):
            self._base.query_one(Input).value = self.wanted = ""
            self._base.query_one(Input).display = False
        self.action_show_page(PAGES[0])

    def action_filter(self) -> None:
        self.action_show_page(PAGES[0])
        self._base.query_one(Input).display = True
        self._base.query_one(Input).focus()

    def on_input_changed(self, changed: Input.Changed) -> None:
        if changed.input.id == "entry":  # not a dialog's
            self.wanted = changed.value.strip()
            self.paint()

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        submitted.input.display = submitted.input.id != "entry"
        self._base.query_one(f"#{self.page}").focus()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:  # noqa: ARG002  Textual's
        """List the keys in the palette, which is the help: what is chosen there is done."""
        for binding in self.BINDINGS:
            if isinstance(binding, Binding):
                yield SystemCommand(binding.description, "", partial(self.run_action, binding.action))
