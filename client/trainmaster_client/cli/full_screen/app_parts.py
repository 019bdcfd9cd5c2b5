"""Calls that must not stop the keyboard: made in a thread, their answers handled where all else is."""

import threading
from collections.abc import Callable
from typing import TypeVar

from textual.app import App
from textual.message import Message

from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.http.answers import printable

T = TypeVar("T")


def in_a_thread(work: Callable[[], None]) -> None:
    """Run the work in a daemon thread: quitting does not wait for an API that gives no answer."""
    threading.Thread(target=work, daemon=True).start()


class Settled(Message):
    """A call is over; ``handle`` knows how it ended."""

    def __init__(self, call: str, handle: Callable[[], None]) -> None:
        super().__init__()
        self.call = call
        self.handle = handle


class BackgroundApp(App[None]):
    """Args: ``in_background`` makes calls."""

    def __init__(self, in_background: Callable[[Callable[[], None]], None]) -> None:
        super().__init__()
        self._in_background = in_background
        self._under_way: set[str] = set()

    def begin(
        self,
        call: str,
        make: Callable[[], T],
        then: Callable[[T], None],
        sorry: Callable[[TrainmasterClientError], None],
    ) -> bool:
        """Begin a call in the background; return False if the call of that name is still under way."""
        if call in self._under_way:
            return False
        self._under_way.add(call)

        def work() -> None:
            try:
                answer = make()
            except TrainmasterClientError as error:
                refused = error
                self.post_message(Settled(call, lambda: sorry(refused)))
            else:
                self.post_message(Settled(call, lambda: then(answer)))

        self._in_background(work)
        return True

    def on_settled(self, settled: Settled) -> None:
        self._under_way.discard(settled.call)
        if self.is_shown:
            settled.handle()

    @property
    def is_shown(self) -> bool:
        """Tell whether the screen is up: answers may come before it begins and once it has ended, too."""
        return bool(self.screen_stack) and bool(self.screen_stack[0].query("#status"))

    def say(self, text: str, *, is_wrong: bool = False) -> None:
        """Show a notification; what users wrote is shown as text, never as markup."""
        lines = "\n".join(printable(line) for line in text.splitlines())
        self.notify(lines, severity="error" if is_wrong else "information", markup=False)
