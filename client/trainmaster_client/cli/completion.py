"""Names of jobs for a shell that completes them: those in the queue, and silence whatever goes wrong."""

import logging
import threading
from contextlib import suppress

from trainmaster_client.cli.connection import connect, visible_names

SECONDS = 1.5
"""Somebody waits with a finger on the tab key."""


def complete_job(incomplete: str) -> list[str]:
    found: list[str] = []

    def look() -> None:
        logging.disable()
        with suppress(Exception):  # whatever is wrong here, a prompt is no place to say it
            found.extend(visible_names(connect()))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(SECONDS)
    return [name for name in found if name.startswith(incomplete)]
