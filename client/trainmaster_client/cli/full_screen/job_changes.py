"""Cancel, priority, hold and release: asked about with what they would do, and done where it is allowed."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import partial
from threading import Thread
from typing import Any, ClassVar, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.jobs import HIGHEST_PRIORITY
from trainmaster_client.cli.silences import Connection
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.jobs.progress import place_line
from trainmaster_client.views.consequences import question

READ_ONLY = "Read-only. To change jobs: trainmaster top --allow-changes"
NO_JOB = "There is no job of yours under the cursor."
T = TypeVar("T")
Work = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopOptions:
    logs_client: Callable[[], Any]
    """Makes a client for CloudWatch Logs."""
    seconds: float = 5.0
    may_change: bool = False
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    in_background: Callable[[Work], None] = lambda work: Thread(target=work, daemon=True).start()
    """Quitting does not wait for a thread with an API that gives no answer."""
    zone: tzinfo | None = None
    """Time zone of the times shown; None means this machine's."""


class Dialog(ModalScreen[str]):
    """Ends with the answer, empty if there is none. Only ``y`` confirms: Enter was perhaps for the table."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical { width: 72; max-width: 100%; height: auto; max-height: 100%; border: solid $accent;
        padding: 0 1; background: $surface; }
    Dialog Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss('y')", show=False),
        Binding("escape,n,question_mark", "dismiss('')", show=False),
    ]

    def __init__(self, title: str, text: str, *, entry: bool) -> None:
        super().__init__()
        self.question, self.text, self._entry = title, text, entry

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self.question, style="bold"))
            yield Static(Text(self.text))
            if self._entry:
                yield Input()
            entry = f"0 to {HIGHEST_PRIORITY}; esc leaves it as it is"
            yield Static(Text(entry if self._entry else "y  yes        n, esc  no"), id="answers")

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        text = submitted.value.strip()
        if text.isascii() and text.isdecimal() and int(text) <= HIGHEST_PRIORITY:
            self.dismiss(text)
        else:
            mistake = f"{text!r} is not a priority: 0 to {HIGHEST_PRIORITY}."
            self.query_one("#answers", Static).update(Text(mistake, style="red"))


class JobChanges(App[None]):
    """Changes jobs. Calls are made in the background, so that none stops the keyboard."""

    def __init__(self, connection: Connection, options: TopOptions) -> None:
        super().__init__()
        self.connection, self.options = connection, options
        self._under_way: set[str] = set()

    def begin(
        self,
        call: str,
        make: Callable[[ApiClient], T],
        then: Callable[[T], None],
        failed: Callable[[TrainmasterClientError], None],
    ) -> bool:
        """Begin a call in the background; return False if the call of that name is still under way."""
        if call in self._under_way:
            return False
        self._under_way.add(call)

        def work() -> None:
            try:
                answer = self.connection.ask(make)
            except TrainmasterClientError as error:
                self.call_later(self._settle, call, partial(failed, error))
            else:
                self.call_later(self._settle, call, partial(then, answer))

        self.options.in_background(work)
        return True

    def _settle(self, call: str, handle: Callable[[], None]) -> None:
        self._under_way.discard(call)
        if self.is_shown:
            handle()

    @property
    def is_shown(self) -> bool:
        """Tell whether the screen is up: answers may come before it begins and once it has ended, too."""
        return bool(self.screen_stack) and bool(self.screen_stack[0].query("#status"))

    def say(self, text: str, *, is_wrong: bool = False) -> None:
        """Show a notification; what users wrote is shown as text, never as markup."""
        lines = "\n".join(printable(line) for line in text.splitlines())
        self.notify(lines, severity="error" if is_wrong else "information", markup=False)

    @property
    @abstractmethod
    def chosen_job(self) -> str:
        """Name of the job shown or under the cursor; empty if there is none, or it is another team's."""

    @abstractmethod
    def action_refresh(self) -> None: ...

    def action_change(self, change: str) -> None:
        """Ask about a change and make it; the job is read again first, so that the question is up to date."""
        name = self.chosen_job
        if not self.options.may_change or not name:
            self.say(NO_JOB if self.options.may_change else READ_ONLY, is_wrong=True)
            return

        def ask(document: Document) -> None:
            job = job_view(document)
            wanted = "release" if change == "hold" and job.state == "held" else change
            warning = question(wanted, job, now=self.options.now())
            if warning.is_vain:
                self.say(warning.consequence)
                return
            dialog = Dialog(warning.title, warning.consequence, entry=change == "priority")
            self.push_screen(dialog, lambda answer: self._make(name, wanted, answer or ""))

        sorry = "Nothing was changed: {}".format
        self.begin(
            "question", lambda api: api.job(name), ask, lambda error: self.say(sorry(error), is_wrong=True)
        )

    def _make(self, name: str, change: str, answer: str) -> None:
        def then(document: Document) -> None:
            job = job_view(document)
            self.say(f"{job.name}: {place_line(job) if job.is_waiting else job.state}")
            self.action_refresh()

        def failed(error: TrainmasterClientError) -> None:
            self.say(f"Not confirmed: {error}", is_wrong=True)
            self.action_refresh()  # a refusal changed nothing; else the next picture shows what happened

        def make(api: ApiClient) -> Document:
            if change == "cancel":
                return api.cancel(name)
            is_number = change == "priority"
            return (
                api.change(name, priority=int(answer))
                if is_number
                else api.change(name, held=change == "hold")
            )

        if answer and not self.begin("change", make, then, failed):
            self.say("Another change is still under way; nothing was sent.", is_wrong=True)
