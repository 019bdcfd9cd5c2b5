"""Seconds from opening a link to the first row of the queue, with few, many and very many jobs."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

from playwright.sync_api import Route
from trainmaster_client.report import Report

from demos.stage.dashboard_walk import Opening
from demos.stage.evidence import Document
from demos.stage.two_teams import World, WorldJob

SIZES = (50, 2000)
"""Waiting jobs that are submitted."""
MOST = 10_000
"""Rows of the last answer, which repeats those of the one before: the twin would take long for so many."""
MOST_SECONDS_AFTER_THE_ANSWER = 1.0
"""Most seconds between the API's first answer and the first row; the API's own time is the twin's."""
_SUBMITTERS = 4
_ROW = "main tbody tr a[href^='#/jobs/']"
_QUEUE = "/ui/data/queue"


def measure(world: World, opening: Opening) -> list[Document]:
    """Return the seconds for each size; the queue of the world is longer afterwards."""
    timings: list[Document] = []
    for size in SIZES:
        _fill(world, size)
        timings.append({"waiting": size, **_seconds(opening)})
    return [*timings, {"waiting": MOST, **_seconds(opening, rows=MOST)}]


def note(report: Report, timing: Document) -> None:
    """Report a time that is too long; it fails nothing, as the machine may have had more to do."""
    after = timing["seconds"] - (timing["seconds_until_the_api_answered"] or 0)
    expected = f"at most {MOST_SECONDS_AFTER_THE_ANSWER} s after the API's answer"
    actual = f"{after:.2f} s, {timing['seconds']:.2f} s after the link was opened"
    name = f"first-row-of-{timing['waiting']}"
    if after <= MOST_SECONDS_AFTER_THE_ANSWER:
        report.check(name, expected=expected, actual=actual, ok=True)
    else:
        report.skip(name, reason=f"warning: {actual}; {expected} where nothing else runs")


def _fill(world: World, size: int) -> None:
    """Submit jobs until this many wait."""
    there = sum(pool["waiting"] for pool in world.api.pools()["pools"])
    jobs = [
        WorldJob(name=f"sweep-{number:04d}", team="vision" if number % 2 else "language", hours=2)
        for number in range(there, size)
    ]
    print(f"{len(jobs)} more jobs are submitted.")
    with ThreadPoolExecutor(_SUBMITTERS) as submitters:
        list(submitters.map(world.add, jobs))
    world.clock(1)


def _seconds(opening: Opening, rows: int | None = None) -> Document:
    """Measure from the link to a row, in a browser that was never here; and the API's part of that.

    Args:
        opening: Opens the tab.
        rows: Number of rows that the answer is lengthened to; None leaves it as it is.
    """
    with opening.blank() as tab:
        if rows is not None:
            tab.page.route(f"**{_QUEUE}?*", _Lengthened(rows))
        began = time.monotonic()
        answered: list[float] = []
        tab.page.on(
            "requestfinished",
            lambda request: answered.append(time.monotonic() - began) if _QUEUE in request.url else None,
        )
        tab.page.goto(opening.dashboard.link(), wait_until="commit")
        tab.page.wait_for_selector(_ROW)
        seconds = time.monotonic() - began
        tab.wait()
        return {
            "seconds": round(seconds, 2),
            "seconds_until_the_api_answered": round(answered[0], 2) if answered else None,
            "seconds_until_all_rows": round(time.monotonic() - began, 2),
            "rows_drawn": tab.page.locator(_ROW).count(),
        }


class _Lengthened:
    """Answers with the rows of the dashboard's answer, repeated under other names."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def __call__(self, route: Route) -> None:
        response = route.fetch()
        document: Document = response.json()
        there = [row for row in document["rows"] if row["name"]]
        rows = [_renamed(there[number % len(there)], number) for number in range(self._rows)]
        route.fulfill(response=response, body=json.dumps({**document, "rows": rows}))


def _renamed(row: Document, number: int) -> Document:
    name = f"{row['name']}-{number}"
    return {**row, "key": name, "name": name, "cells": {**row["cells"], "job": name}}
