"""Every reason to wait has a number or a name, and no name leaves its team."""

import pytest
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.reason_codes import parse_code
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.backfill import BackfillReservation
from trainmaster.core.planning.refusal_records import AccountLimit

from tests.builders import NOON, A, B, of, running, waiting
from tests.unit.core.planning.plans import warm

MINE, THEIRS = waiting("mine", team="vision"), waiting("theirs", team="speech")


def reservation(*, certain: bool = True) -> BackfillReservation:
    return BackfillReservation(job=THEIRS, vector=of(2), at=NOON if certain else None, extra={})


FIRST = "a job of team speech is ahead and waits for ml.a.xlarge=2"
BY_NOON = "expected by 2026-11-02 12:00 UTC at the latest"
NEXT_TRY = "and one job at a time checks whether it still does, the next one at 2026-11-02 12:00 UTC or later"
PROBE = "a job of team speech goes first, to see if the account allows more ml.a.xlarge"
LIMIT = AccountLimit(limit=4, until=NOON, refusals=2)


@pytest.mark.parametrize(
    ("reason", "code", "message"),
    [
        pytest.param(
            wait_reasons.PAUSED,
            "paused",
            "an admin paused starts and preemptions; 0 jobs start until they resume",
            id="paused",
        ),
        pytest.param(
            wait_reasons.ahead(MINE, reservation()),
            "ahead",
            f"{FIRST}, {BY_NOON}",
            id="ahead, with the time that is certain",
        ),
        pytest.param(
            wait_reasons.ahead(MINE, reservation(certain=False)),
            "ahead",
            FIRST,
            id="ahead, and no time is certain",
        ),
        pytest.param(
            wait_reasons.reserved(MINE, of(1), reservation(), until=NOON),
            "reservation",
            f"ml.a.xlarge=1 would fit now, but may run until 2026-11-02 12:00 UTC; {FIRST}, {BY_NOON}",
            id="it would fit, and run for too long",
        ),
        pytest.param(
            wait_reasons.short({**of(2), **of(1, B)}, of(-1)),
            "capacity",
            "needs ml.a.xlarge=2+ml.b.xlarge=1, free ml.a.xlarge=0+ml.b.xlarge=0",
            id="never a number below zero",
        ),
        pytest.param(
            wait_reasons.too_big(of(3), of(2)),
            "capacity",
            "needs ml.a.xlarge=3, the pool has ml.a.xlarge=2 in all",
            id="more than the pool has",
        ),
        pytest.param(
            wait_reasons.making_room(
                of(2), [running("a", team="vision"), running("b", team="speech")], to="vision"
            ),
            "capacity",
            "a, a job of team speech are stopping to make room for ml.a.xlarge=2",
            id="who stops for it",
        ),
        pytest.param(
            wait_reasons.releasing(of(2), [warm("a"), warm("b")]),
            "capacity",
            "needs ml.a.xlarge=2; warm pools being released for it: 2",
            id="warm pools given up for it",
        ),
        pytest.param(
            wait_reasons.limited(of(2), Capacity(A), LIMIT),
            "account-limit",
            f"needs ml.a.xlarge=2; AWS refused more than 4 ml.a.xlarge recently, {NEXT_TRY}",
            id="what the account allows",
        ),
        pytest.param(
            wait_reasons.probing(of(2), Capacity(A), THEIRS, to="vision"),
            "account-limit",
            f"needs ml.a.xlarge=2; {PROBE}",
            id="who finds out what the account allows",
        ),
    ],
)
def test_reasons_in_words(reason: Reason, code: str, message: str) -> None:
    assert reason == Reason(code=parse_code(code), message=message)
