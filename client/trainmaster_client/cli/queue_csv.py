"""The queue as CSV: a row a job, instants in UTC, spans in seconds."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from trainmaster_client.cli.csv_output import Cell, print_csv
from trainmaster_client.cli.queue_columns import QueueRow

HEADINGS = (
    *("job", "team", "pool", "state", "reason_code", "reason", "instances", "priority", "position"),
    *("attempt", "submitted_at", "started_at", "training_since", "ends_by", "ran_seconds", "left_seconds"),
    *("starts_p50", "starts_p90"),
)
"""New ones come at the end."""


def print_queue_csv(rows: Sequence[QueueRow]) -> None:
    print_csv(HEADINGS, map(_cells, rows))


def _cells(row: QueueRow) -> tuple[Cell, ...]:
    job, why = row.job, row.job.waiting or row.job.reason
    start = row.start
    return (
        *(job.name, job.team, job.pool, job.state),
        *((why.code, why.message) if why else (None, None)),
        *(job.instances, job.priority, job.position, job.attempt),
        *map(_instant, (job.submitted_at, job.started_at, job.training_since, job.ends_by)),
        *map(_seconds, (row.ran, row.left)),
        *map(_instant, (start.p50, start.p90) if start else (None, None)),
    )


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())
