from trainmaster_client.simulate.page.slots import Window, busiest, placed

from tests.unit.client.simulate.hand_made import attempt, two_policies


def test_each_attempt_lies_on_instances_of_its_own() -> None:
    attempts = [
        attempt("a", 0, 0, 100),
        attempt("b", 10, 10, 50, instances=2),
        attempt("c", 60, 60, 90),
        attempt("d", 100, 100, 120, instances=2),
    ]
    rows = {one.job: runs for one, runs in placed(attempts, slots=3)}
    assert rows == {"a": [(0, 1)], "b": [(1, 2)], "c": [(1, 1)], "d": [(0, 1), (2, 1)]} or rows["d"] == [
        (0, 2)
    ]


def test_the_window_lies_where_most_was_waited_for() -> None:
    window = busiest(two_policies())
    assert window is not None
    assert (window.pool, window.slots) == ("g5", 1)


def test_a_window_shows_what_overlaps_with_it() -> None:
    window = Window(pool="g5", since_s=100, until_s=200, slots=1)
    attempts = [attempt("before", 0, 0, 100), attempt("in", 150, 150, 160), attempt("after", 200, 200, 300)]
    assert [one.job for one in window.shown(attempts)] == ["in"]
