"""One function for each source: reads it, and gives its jobs with what is not known of them."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from trainmaster.core.policy import Policy

from trainmaster_client.simulate.past_jobs import History
from trainmaster_client.simulate.sources.export_lines import read_lines
from trainmaster_client.simulate.sources.exported_history import exported_history
from trainmaster_client.simulate.sources.text_lines import text_of
from trainmaster_client.simulate.sources.trace_history import BEGINS, trace_history
from trainmaster_client.simulate.sources.trace_rows import read_rows

_PERIOD_UNKNOWN = (
    "The file does not say from when on it is whole: jobs that ended before its period are not in it, so "
    "waits at its beginning are too short where jobs in it were submitted earlier."
)


def history_from_trace(path: Path, policy: Policy, *, seed: int, begins: datetime = BEGINS) -> History:
    """A CSV file with a job a line; docs/simulate.md has the columns.

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
        found = read_rows(lines, where=str(path))
    return trace_history(found, policy, seed=seed, source=f"trace {path.name}", begins=begins)


def history_from_file(path: Path, *, begins: datetime | None = None) -> History:
    """The lines that ``trainmaster history-export`` or the API wrote.

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
