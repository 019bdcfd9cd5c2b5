"""Binds the keys of ``trainmaster top``; they are those of k9s."""

from abc import abstractmethod
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from trainmaster_client.cli.full_screen.dialogs import Help
from trainmaster_client.cli.full_screen.job_changes import NO_JOB, JobChanges
from trainmaster_client.cli.full_screen.job_screen import JobScreen

PAGES = ("queue", "pools", "timeline")
HINTS = ": command  / filter  d describe  l logs  k cancel  p priority  h hold  ? help"
COMMANDS = ("queue", "pools", "timeline", "job NAME", "help", "quit")
_SHORT = {"q": "quit", "jobs": "queue", "tl": "timeline", "?": "help"}


class AppKeys(JobChanges):
    """Gives each key its meaning; the app derived from it shows the result."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"show_page('{page}')", show=False) for n, page in enumerate(PAGES, start=1)),
        Binding("colon", "enter(':')", show=False),
        Binding("slash", "enter('/')", show=False),
        Binding("escape", "leave", show=False),
        Binding("d", "describe('sheet')", show=False),
        Binding("l", "describe('log')", show=False),
        Binding("k,ctrl+d", "cancel", show=False),
        Binding("p", "priority", show=False),
        Binding("h", "hold", show=False),
        Binding("r", "read_again", show=False),
        Binding("plus", "zoom(-1)", show=False),
        Binding("minus", "zoom(1)", show=False),
        Binding("question_mark", "help", show=False),
        Binding("q", "quit", show=False),
    ]
    page = PAGES[0]
    wanted = ""
    """Text that the queue is filtered by."""
    _mark = ""
    """Prefix of what is being entered, a command or a filter; empty if nothing is."""

    @abstractmethod
    def paint(self) -> None: ...

    @abstractmethod
    def page_changed(self) -> None: ...

    @abstractmethod
    def open_job(self, name: str, part: str) -> None: ...

    @abstractmethod
    def read_part(self) -> None: ...

    @abstractmethod
    def refresh_timeline(self) -> None: ...

    @abstractmethod
    def zoom(self, by: int) -> None: ...

    def action_show_page(self, page: str) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.page = page
        self.page_changed()

    def action_describe(self, part: str) -> None:
        if isinstance(self.screen, JobScreen):
            self.screen.show_part(part)
            self.read_part()
        elif self.chosen_job:
            self.open_job(self.chosen_job, part)
        else:
            self.say(NO_JOB, is_wrong=True)

    def action_leave(self) -> None:
        if len(self.screen_stack) > 1:
            self.pop_screen()
        elif self._mark:
            if self._mark == "/":
                self.wanted = ""
            self._close_entry()
        elif self.wanted:
            self.wanted = ""
            self.paint()
        elif self.page != PAGES[0]:
            self.action_show_page(PAGES[0])

    def action_read_again(self) -> None:
        self.refresh_picture()
        self.refresh_timeline()

    def action_zoom(self, by: int) -> None:
        self.zoom(by)

    def action_help(self) -> None:
        self.push_screen(Help())

    # ---- what is entered at the bottom

    def action_enter(self, mark: str) -> None:
        self.action_show_page("queue" if mark == "/" else self.page)
        self._mark = mark
        entry = self._entry
        entry.placeholder = "filter the queue" if mark == "/" else f"one of: {', '.join(COMMANDS)}"
        entry.value = self.wanted if mark == "/" else ""
        entry.display = True
        entry.focus()

    def on_input_changed(self, changed: Input.Changed) -> None:
        if self._mark == "/" and changed.input is self._entry:
            self.wanted = changed.value.strip()
            self.paint()

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        if submitted.input is not self._entry:
            return
        mark, text = self._mark, submitted.value.strip()
        self._close_entry()
        if mark == ":" and text:
            self._run_command(text)

    def _run_command(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        command = _SHORT.get(word, word)
        if command in PAGES:
            self.action_show_page(command)
        elif command == "quit":
            self.exit()
        elif command == "help":
            self.action_help()
        elif command == "job" and rest.strip():
            self.open_job(rest.strip(), "sheet")
        else:
            self.say(f"{text!r} is not a command: {', '.join(COMMANDS)}", is_wrong=True)

    def _close_entry(self) -> None:
        self._mark = ""
        self._entry.display = False
        self.page_changed()

    @property
    def _entry(self) -> Input:
        return self.screen_stack[0].query_one("#entry", Input)
