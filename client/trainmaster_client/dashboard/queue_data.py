"""The queue as the pages get it: the rows that every view shows, which the pages only draw."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from http import HTTPStatus
from typing import Any

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.gateway.queued_calls import RenewingApi
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import FINAL_STATES, LIVE_STATES, NO_NAME, JobView, job_view
from trainmaster_client.jobs.queue_reader import QueueReader
from trainmaster_client.jobs.why_lines import SHOWN_JOBS, depends_on_others, wait_report
from trainmaster_client.views.consequences import CHANGES, question
from trainmaster_client.views.queue_model import QueueAnswers, job_rows, queue_model
from trainmaster_client.views.queue_rows import COLUMNS, STATE_MARKS, Row

FIRST_JOBS = "100"
"""Jobs of the part that is shown while the rest of a long queue comes."""
_OWN = frozenset({"now", "part"})
"""Parameters that the API does not get."""


class PageApi(RenewingApi):
    """Reads once: a page says what holds it up, a limit or a silence of the API, and asks again by itself."""

    def _read(self, path: str) -> Document:
        return self._parsed(self.passed_on("GET", path, None, {}))

    def _read_unless(self, etag: str, path: str) -> Document | None:
        answer = self.passed_on("GET", path, None, {"if-none-match": etag})
        return None if answer.status == HTTPStatus.NOT_MODIFIED else self._parsed(answer)


class QueueData:
    """Threads may share it. Its methods raise TrainmasterClientError."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._reader = QueueReader(lambda: api)

    def queue(self, given: Mapping[str, str], *, now: datetime) -> Document:
        """Return rows and pools; with ``part=first`` only those of a first page, without likely starts.

        Args:
            given: Parameters of ``GET /jobs``.
            now: The instant that ages are counted up to.
        """
        filters = {name: value for name, value in given.items() if name not in _OWN}
        is_first = given.get("part") == "first"
        read = self._reader.first_page if is_first else self._reader.whole
        document = read({**filters, "limit": FIRST_JOBS} if is_first else filters)
        answers = QueueAnswers(document=document, pools=self._api.pools().get("pools") or ())
        starts = None if is_first else self._reader.starts(answers.jobs)
        answers = QueueAnswers(document=document, pools=answers.pools, starts=starts)
        model = queue_model(answers, now=now)
        return {
            "columns": [asdict(column) for column in COLUMNS],
            "rows": [_row(row, number) for number, row in enumerate(model.rows)],
            "pools": [asdict(pool) for pool in model.pools],
            "teams": sorted({team for pool in answers.pools for team in _teams(pool)}),
            "has_starts": model.has_starts,
            "is_partial": bool(document.get("next_token")),
        }

    def job(self, name: str, *, now: datetime) -> Document:
        """Return a job as the API answers it, its row, why it waits, and what each change of it would do."""
        document = self._api.job(name)
        job = job_view(document)
        others, trouble = self._others(job) if depends_on_others(job) else ([], "")
        (row, *_) = job_rows([job, *others], now=now, pools=self._reader.pools() if others else ())
        questions = {change: asdict(question(change, job, now=now)) for change in CHANGES}
        wait = {**_wait(job, others), "trouble": trouble}
        return {"job": document, "row": _row(row, 0), "wait": wait, "questions": questions}

    def _others(self, job: JobView) -> tuple[list[JobView], str]:
        """Read the other jobs of its pool; or say why not, as a job is shown without them, too.

        What did not change since the last look is not sent again.
        """
        try:
            entries = self._reader.whole({"pool": job.pool}).get("jobs") or ()
            return [other for other in map(job_view, entries) if other.name != job.name], ""
        except TrainmasterClientError as error:
            return [], str(error)


def _wait(job: JobView, others: Sequence[JobView]) -> dict[str, Any]:
    report = wait_report(job, others)
    return {
        "users": [_party(user) for user in report.users[:SHOWN_JOBS]],
        "unnamed_users": len(report.users[SHOWN_JOBS:]),
        "ahead": [_party(other) for other in report.ahead],
        "unnamed_ahead": report.unnamed_ahead,
        "help": report.help,
    }


def _party(job: JobView) -> dict[str, Any]:
    return {
        "name": job.name or "",
        "shown": job.name or NO_NAME,
        "team": job.team,
        "instances": job.instances,
        "priority": job.priority,
        "ends_by": _text(job.ends_by),
    }


def _teams(pool: Mapping[str, Any]) -> list[str]:
    return [printable(team.get("name")) for team in pool.get("teams") or ()]


def states() -> Document:
    """Return sign, tone and phase of each state, in the order in which pages offer them."""
    return {state: {**asdict(mark), "phase": _phase(state)} for state, mark in STATE_MARKS.items()}


def _phase(state: str) -> str:
    if state in FINAL_STATES:
        return "final"
    return "live" if state in LIVE_STATES else "waiting"


def _row(row: Row, number: int) -> dict[str, Any]:
    job, start, cells = row.job, row.start, row.cells
    return {
        "key": f"{cells['pool']} {row.name}" if row.name else f"{cells['team']} {cells['pool']} {number}",
        "name": row.name,
        "is_job": job is not None,
        "cells": cells,
        **asdict(row.mark),
        "phase": _phase(cells["state"]),
        "code": row.code,
        "searched": row.searched,
        "submitted_by": job.submitted_by if job else "",
        "cost_usd": job.cost_usd if job else None,
        "submitted_at": _text(job.submitted_at if job else None),
        "started_at": _text(job.started_at if job else None),
        "ended_at": _text(job.ended_at if job else None),
        "ends_by": _text(job.ends_by if job else None),
        "ran_seconds": None if row.ran is None else row.ran.total_seconds(),
        "left_seconds": None if row.left is None else row.left.total_seconds(),
        "starts_p50": _text(start.p50 if start else None),
        "starts_p90": _text(start.p90 if start else None),
    }


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
