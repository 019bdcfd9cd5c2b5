"""Work that nobody waits for: deliveries and invocations that go on after the call that caused them."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from local.clock import Activity

logger = logging.getLogger(__name__)

_THREADS = 32


class Background:
    """Runs actions on threads and counts each as activity from the moment it is handed over."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="twin-background")
        self._closed = False

    def run(self, what: str, action: Callable[[], object]) -> None:
        """Start ``action`` soon; after ``close`` nothing is started any more."""
        if self._closed:
            return
        busy = ExitStack()
        busy.enter_context(self._activity.busy(what))
        try:
            self._executor.submit(self._run, busy, what, action)
        except RuntimeError:  # closed in between
            busy.close()

    def close(self) -> None:
        """Start nothing more, and wait for what runs."""
        self._closed = True
        self._executor.shutdown(cancel_futures=True)

    def _run(self, busy: ExitStack, what: str, action: Callable[[], object]) -> None:
        with busy:
            if self._closed:
                return
            try:
                action()
            except Exception:  # the bulkhead of deliveries: nobody else would hear of it
                logger.exception("%s failed", what)
