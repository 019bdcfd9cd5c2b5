"""What passes look at of a pool's order, in the table."""

from typing import Any

from trainmaster.adapters.dynamodb import DynamoFronts
from trainmaster.core.monitoring.queue_front_looks import Front, Look, Unseen

from tests.builders import NOON
from tests.integration.conftest import TABLE

LOOK = Look(at=NOON, first=("a", "b"))
UNSEEN = Unseen(name="c", since=NOON)


def test_a_look_and_whom_it_leaves_out_are_kept_beside_each_other(dynamodb: Any) -> None:
    fronts = DynamoFronts(dynamodb, table=TABLE)
    assert fronts.front("main") == Front()
    fronts.note_unseen("main", UNSEEN)
    fronts.note_look("main", LOOK)
    assert fronts.front("main") == Front(look=LOOK, unseen=UNSEEN)
    fronts.note_unseen("main", None)
    assert fronts.front("main") == Front(look=LOOK)
    assert fronts.front("other") == Front()
