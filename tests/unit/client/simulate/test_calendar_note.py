"""A replay says which pools have a calendar that it does not follow."""

from trainmaster.core.policy import parse_policy
from trainmaster_client.simulate.engine.event_loop import nothing_yet

from tests.builders import A
from tests.unit.client.simulate.replayed import history

CALENDAR = [{"every": "Mon-Fri", "capacity": {A: 1}}]


def test_a_calendar_is_named_as_not_replayed() -> None:
    pool = {"name": "p5", "capacity": {A: 2}}
    plain, timed = (parse_policy({"pools": [pool | extra]}) for extra in ({}, {"calendar": CALENDAR}))
    assert nothing_yet(history(), plain, label="").notes == []
    (note,) = nothing_yet(history(), timed, label="").notes
    assert "not replayed yet: p5 " in note
