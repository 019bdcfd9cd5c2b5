"""The loop that moves a study on: it says what is wrong once, tries again and ends with the study."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from trainmaster_client.errors import ApiUnreachableError
from trainmaster_client.tuning.study import Study, StudyStatus
from trainmaster_client.tuning.study_runs import run_until_end
from trainmaster_client.tuning.study_store import StudyPlace

from tests.builders import NOON
from tests.unit.client.tuning.requests import request

PLACE = StudyPlace.below("s3://bucket/out", "tune")
RUNS = Study(request=request(), created_at=NOON, modified_at=NOON)
OVER = replace(RUNS, ending=StudyStatus.COMPLETED, ended_at=NOON)
AWAY = ApiUnreachableError("https://api", why="off.")


class Passes:
    """Each step is the next of these."""

    def __init__(self, *steps: Study | Exception | None) -> None:
        self._steps = list(steps)

    def step(self, _: StudyPlace) -> Study | None:
        found = self._steps.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


def ran(*steps: Study | Exception | None) -> tuple[Study | None, list[Study], list[float]]:
    told: list[Study] = []
    slept: list[float] = []
    passes: Any = Passes(*steps)
    return run_until_end(passes, PLACE, tell=told.append, sleep=slept.append), told, slept


def test_each_change_is_told_once_and_pauses_grow_while_nothing_happens() -> None:
    last, told, slept = ran(*[RUNS] * 60, OVER)
    assert (last, told) == (OVER, [RUNS, OVER])
    assert slept[0] == 1.0
    assert slept == sorted(slept)
    assert slept[-1] > 2.0


def test_trouble_is_said_once_and_the_study_goes_on_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        last, told, slept = ran(RUNS, AWAY, AWAY, AWAY, OVER)
    assert (last, told, len(slept)) == (OVER, [RUNS, OVER], 4)
    assert len(caplog.records) == 1
    assert PLACE.url in caplog.text


def test_a_study_that_is_no_longer_there_ends_it() -> None:
    assert ran(RUNS, None)[0] is None


def test_trouble_at_the_first_look_is_tried_again() -> None:
    assert ran(AWAY, OVER)[0] == OVER
