"""Runs a replay of the Policy page: ``python -m trainmaster_client.dashboard.replay_program``.

The question is a line of JSON on standard input, ``{"text", "days", "until"}``; what comes of it are lines of
JSON on standard output. It ends when its input does: then nobody waits for it any more.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TextIO

import boto3

from trainmaster_client.api import ApiClient, find_api_url
from trainmaster_client.errors import ForbiddenError, TrainmasterClientError
from trainmaster_client.policies.policy_document import parse_policy
from trainmaster_client.simulate.comparison.comparisons import Comparison
from trainmaster_client.simulate.comparison.figure_rows import figure_rows
from trainmaster_client.simulate.comparison.figures import Waits
from trainmaster_client.simulate.comparison.summaries import change_lines, unfinished_lines
from trainmaster_client.simulate.comparison.wording import change_text, count_text, time_text
from trainmaster_client.simulate.io.policy_replay import PolicyReplay, period_up_to, replay_policy

NEW = "as edited"
"""Label of the policy that is asked about."""
COMMAND = "the Policy page of the dashboard"
NICENESS = 10
"""Whoever works on the machine goes first."""
SAYS_EVERY_SECONDS = 0.5
ADMINS_ONLY = "Only admins may replay a policy: it needs the history of the jobs of all teams."
_ABANDONED = 1


def main() -> int:
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    question = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with, args=(sys.stdin,), daemon=True).start()
    os.nice(NICENESS)
    try:
        _say(answers, answer(question, doing=_Doing(answers)))
    except ForbiddenError:
        _say(answers, {"error": ADMINS_ONLY})
    except TrainmasterClientError as error:
        _say(answers, {"error": str(error)})
    return 0


def answer(question: Mapping[str, Any], *, doing: "_Doing") -> Mapping[str, Any]:
    """Replay the policy over the days before ``until`` (ISO 8601). Raises TrainmasterClientError."""
    document = parse_policy(question["text"].encode(), source="The text")
    session = boto3.Session()
    api = ApiClient(find_api_url(None, session), session)
    period = period_up_to(datetime.fromisoformat(question["until"]), timedelta(days=question["days"]))
    replay = replay_policy(api, (NEW, document), period, doing=doing)
    return {"result": result_of(replay), "report": replay.report(command=COMMAND)}


def result_of(replay: PolicyReplay) -> dict[str, Any]:
    """Turn a replay into the document that the page shows: texts alone."""
    comparison = replay.comparison
    base, last = comparison.base, comparison.last
    return {
        "notes": list(_notes(replay)),
        "summary": [*change_lines(comparison.changes[last.label]), *unfinished_lines(base, last)],
        "tables": [
            _figures(comparison),
            _waits(comparison, "Waits by team", base.waits_by_team, last.waits_by_team),
            _waits(comparison, "Waits by priority", base.waits_by_class, last.waits_by_class),
        ],
        "not_in_model": list(replay.limits),
    }


def _notes(replay: PolicyReplay) -> Sequence[str]:
    jobs, since = len(replay.history.jobs), max(replay.since, replay.period.since)
    if replay.is_whole:
        return [f"{jobs:,} jobs, submitted since {since:%Y-%m-%d %H:%M} UTC or waiting then."]
    return [f"{jobs:,} jobs: the history of this stack is shorter, it begins at {since:%Y-%m-%d %H:%M} UTC."]


def _figures(comparison: Comparison) -> dict[str, Any]:
    base, last = comparison.columns.index(comparison.base), len(comparison.columns) - 1
    rows = [
        [row.label, row.cells[base], row.cells[last], row.changes[last]] for row in figure_rows(comparison)
    ]
    return {"title": "Figures", "columns": ["Figure", *_labels(comparison), "Change"], "rows": rows}


def _waits(
    comparison: Comparison, title: str, before: Mapping[str, Waits], after: Mapping[str, Waits]
) -> dict[str, Any]:
    """Make the table of the times that nine of ten jobs wait at most."""
    rows = [
        [
            name,
            count_text(waits.jobs),
            time_text(waits.p90_s),
            time_text(after[name].p90_s) if name in after else "",
            change_text(waits.p90_s, after[name].p90_s) if name in after else "",
        ]
        for name, waits in before.items()
    ]
    columns = [title.rpartition(" ")[2].capitalize(), "Jobs", *_labels(comparison), "Change"]
    return {"title": f"{title}: 9 of 10 jobs within", "columns": columns, "rows": rows}


def _labels(comparison: Comparison) -> tuple[str, str]:
    return comparison.base.label, comparison.last.label


class _Doing:
    """Says what is done, not more often than somebody could read it."""

    def __init__(self, answers: TextIO) -> None:
        self._answers = answers
        self._said_at = 0.0

    def __call__(self, doing: str, share: float | None) -> None:
        now = time.monotonic()
        if now - self._said_at >= SAYS_EVERY_SECONDS:
            self._said_at = now
            _say(self._answers, {"doing": doing, "share": share})


def _say(answers: TextIO, document: Mapping[str, Any]) -> None:
    answers.write(json.dumps(document) + "\n")
    answers.flush()


def _end_with(questions: TextIO) -> None:
    """End this process and those that replay for it once the dashboard has ended, however it did."""
    questions.read()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(_ABANDONED)


if __name__ == "__main__":
    sys.exit(main())
