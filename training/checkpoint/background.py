"""One piece of work at a time in a thread of its own; its error is kept for whoever asks next."""

import threading
from collections.abc import Callable


class Background:
    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def start(self, work: Callable[[], None]) -> None:
        """The one before must have been waited for."""
        assert self._thread is None

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001  raised in the thread that asks
                self._error = error

        # A daemon: a rank that fails leaves, even if the others never answer its last save.
        self._thread = threading.Thread(target=run, name="checkpoint", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it is done; at most so long. Raises, once, what the work raised."""
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                return False
        self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True
