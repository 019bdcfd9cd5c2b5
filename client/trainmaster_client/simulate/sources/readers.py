"""One function for each source: reads it, and gives its jobs with what is not known of them."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from trainmaster.core.policy import Policy

from trainmaster_client.api import ApiClient
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.histories.export_lines import read_lines
from trainmaster_client.simulate.histories.exported_history import exported_history
from trainmaster_client.simulate.histories.trace_history import BEGINS, trace_history
from trainmaster_client.simulate.histories.trace_rows import read_rows
from trainmaster_client.simulate.sources.account_export import Period, export_pages
from trainmaster_client.simulate.sources.reading_progress import Progress, silent
from trainmaster_client.simulate.sources.text_files import text_of

_PERIOD_UNKNOWN = (
    "The file does not say from when on it is whole: jobs that ended before its period are not in it, so "
    "waits at its beginning are too short where jobs in it were submitted earlier."
)


def history_from_account(
    api: ApiClient,
    period: Period,
    *,
    progress: Progress = silent,
    pause: Callable[[float], None] = time.sleep,
) -> History:
    """Read what the account's own stack recorded, page by page; for admins.

    Args:
        api: Of the stack.
        period: Longer ones than the API takes are read in parts.
        progress: Called with the lines read so far.
        pause: Waits that many seconds where the API was asked too often.

    Raises:
        ForbiddenError: The caller is not an admin; its note says what to do.
        InvalidArgumentError: There is no job to replay.
        MalformedHistoryError: The API exports what this client does not know.
    """
    lines = _progressing(export_pages(api, period, pause=pause), progress)
    source = f"stack at {api.api_url}, {period}"
    exported = read_lines(lines, where=source)
    return exported_history(exported, source=source, read_at=period.until, begins=period.since)


def _progressing(pages: Iterable[str], progress: Progress) -> Iterator[str]:
    done = 0
    for page in pages:
        lines = page.splitlines()
        done += len(lines)
        progress(done, None)
        yield from lines


def history_from_trace(path: Path, policy: Policy, *, seed: int, begins: datetime = BEGINS) -> History:
    """Read a CSV file with a job a line; docs/simulate.md has the columns.

    Args:
        path: May be compressed by gzip.
        policy: Whose pools the jobs are mapped to.
        seed: Draws what the trace lacks.
        begins: The instant of the trace's second 0.

    Raises:
        InvalidArgumentError: The file cannot be read, or the policy has no GPUs.
        MalformedHistoryError: With every mistake in it.
    """
    with text_of(path) as lines:
        trace = read_rows(lines, where=str(path))
    return trace_history(trace, policy, seed=seed, source=f"trace {path.name}", begins=begins)


def history_from_file(path: Path, *, begins: datetime | None = None) -> History:
    """Read the lines that ``trainmaster history-export`` or the API wrote.

    Args:
        path: May be compressed by gzip.
        begins: From when on it has all jobs; None: it has all jobs from the first submission in it on.

    Raises:
        InvalidArgumentError: The file cannot be read, or has no jobs to replay.
        MalformedHistoryError: With every mistake in it.
    """
    with text_of(path) as lines:
        exported = list(read_lines(lines, where=str(path)))
    history = exported_history(exported, source=f"file {path.name}", begins=begins)
    return history if begins else replace(history, not_known=(*history.not_known, _PERIOD_UNKNOWN))
