"""A usage row as this release writes it is right for a release that knows no unknown work, too."""

from trainmaster.adapters.dynamodb.codec import SPENT_ON, UNSEEN, usage_line
from trainmaster.core.costs.ledger import Cause

ROW = {"sk": "j#a", f"{SPENT_ON}productive": 70, UNSEEN: 40, f"{SPENT_ON}startup": 10}


def test_the_causes_that_earlier_releases_know_add_up_to_the_cost() -> None:
    known = sum(
        cents for name, cents in ROW.items() if str(name).startswith(SPENT_ON) and isinstance(cents, int)
    )
    assert known == usage_line(ROW).cents == 80


def test_what_nobody_saw_saved_is_taken_out_of_what_is_productive() -> None:
    assert usage_line(ROW).by == {Cause.PRODUCTIVE: 30, Cause.UNKNOWN: 40, Cause.STARTUP: 10}


def test_a_row_of_an_earlier_release_has_nothing_unknown() -> None:
    row = {"sk": "j#a", f"{SPENT_ON}productive": 70}
    assert usage_line(row).by == {Cause.PRODUCTIVE: 70}
