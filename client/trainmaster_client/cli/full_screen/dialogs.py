"""Dialogs that ask before something changes, and the help. Each takes all keys until it is answered."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from trainmaster_client.cli.jobs import HIGHEST_PRIORITY

KEYS = (
    ("1 2 3", "queue, pools, timeline"),
    ("up down pgup pgdn", "move"),
    ("d enter", "describe the job"),
    ("l", "its log"),
    ("esc", "back; shows all jobs again"),
    ("/", "filter the queue by any text"),
    (":", "a command: queue, pools, timeline, job NAME, quit"),
    ("+ -", "a shorter or longer timeline"),
    ("r", "refresh now"),
    ("k ctrl-d", "cancel the job *"),
    ("p", "change its priority *"),
    ("h", "hold or release it *"),
    ("? q", "this help, quit"),
)
READ_ONLY = "* needs: trainmaster top --allow-changes"


class Dialog(ModalScreen[str]):
    """Ends with what was answered; empty: nothing is to be done."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical { width: 72; max-width: 100%; height: auto; max-height: 100%; border: solid $accent;
        padding: 0 1; background: $surface; }
    Dialog Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "refuse", show=False)]

    def action_refuse(self) -> None:
        self.dismiss("")


class Confirmation(Dialog):
    """Asks for a confirmation. Only ``y`` confirms: Enter was perhaps meant for the table below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "confirm", show=False),
        Binding("n", "refuse", show=False),
    ]

    def __init__(self, question: str, consequence: str) -> None:
        super().__init__()
        self._question = question
        self.consequence = consequence

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._question, style="bold"))
            yield Static(Text(self.consequence))
            yield Static(Text("y  yes        n, esc  no"))

    def action_confirm(self) -> None:
        self.dismiss("y")


class PriorityPrompt(Dialog):
    """Ends with a number as text."""

    def __init__(self, question: str, consequence: str) -> None:
        super().__init__()
        self._question = question
        self.consequence = consequence

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._question, style="bold"))
            yield Static(Text(self.consequence))
            yield Input(placeholder=f"0 to {HIGHEST_PRIORITY}; esc leaves it as it is", id="priority")
            yield Static("", id="mistake")

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        text = submitted.value.strip()
        if text.isascii() and text.isdecimal() and int(text) <= HIGHEST_PRIORITY:
            self.dismiss(text)
        else:
            mistake = Text(f"{text!r} is not a priority: 0 to {HIGHEST_PRIORITY}.", style="red")
            self.query_one("#mistake", Static).update(mistake)


class Help(Dialog):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,q,enter", "refuse", show=False)]

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text("\n".join(f"{keys:<18} {what}" for keys, what in KEYS)))
            yield Static(Text(f"{READ_ONLY}\nesc  back"))
