"""``trainmaster repair``."""

import pytest

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted

DIFFERENT = {"row": "P#main/counters", "field": "used#ml.g5.xlarge", "stored": "3", "computed": "2"}
ORPHAN = {
    "row": "Q#main#red#ml.g5.xlarge=1/1#gone",
    "field": "*",
    "stored": "a row of 9 fields",
    "computed": None,
}
BROKEN = {"key": "J#old/job", "error": "ValueError: 'archived' is not a valid JobState"}


def report(*, apply: bool = False, state: str = "done", **found: object) -> Scripted:
    document = {"state": state, "apply": apply, "jobs_read": 7, "differences": [], "set_aside": []}
    return Scripted(document={**document, **found})


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmaster_client.cli.repair.POLL_SECONDS", 0.0)


def test_a_dry_run_is_waited_for_and_says_what_differs(trainmaster: Trainmaster, api: FakeApi) -> None:
    api.script("POST", "/repair", Scripted(status=202, document={"state": "running"}))
    api.script(
        "GET",
        "/repair",
        report(state="running"),
        report(differences=[DIFFERENT, ORPHAN], set_aside=[BROKEN]),
    )
    ran = trainmaster("repair")
    assert (ran.code, ran.out.splitlines()) == (
        0,
        [
            "7 jobs read.",
            "P#main/counters used#ml.g5.xlarge is 3, by the jobs 2",
            "Q#main#red#ml.g5.xlarge=1/1#gone is a row of 9 fields, by the jobs missing",
            "Nothing was changed. To rebuild: trainmaster policy pause, then trainmaster repair --apply",
            "1 rows cannot be understood and were left as they are:",
            "  J#old/job: ValueError: 'archived' is not a valid JobState",
        ],
    )


def test_without_differences_there_is_nothing_to_do(trainmaster: Trainmaster, api: FakeApi) -> None:
    api.script("POST", "/repair", Scripted(status=202, document={"state": "running"}))
    api.script("GET", "/repair", report(apply=True))
    assert trainmaster("repair", "--apply").out.splitlines() == [
        "7 jobs read.",
        "Every row agrees with the jobs.",
    ]
