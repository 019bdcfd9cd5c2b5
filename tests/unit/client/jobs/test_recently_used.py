"""What stays of what is kept, and what goes."""

from trainmaster_client.jobs.queued_jobs import RecentlyUsed


def test_what_was_not_used_for_longest_goes_first() -> None:
    kept = RecentlyUsed[int](most=2)
    kept.keep("a", 1)
    kept.keep("b", 2)
    assert kept.get("a") == 1
    kept.keep("c", 3)
    assert [kept.get(name) for name in "abc"] == [1, None, 3]


def test_what_is_kept_again_takes_no_second_place() -> None:
    kept = RecentlyUsed[int](most=2)
    for number in range(3):
        kept.keep("a", number)
    kept.keep("b", 9)
    assert [kept.get(name) for name in "ab"] == [2, 9]


def test_what_is_taken_is_gone() -> None:
    kept = RecentlyUsed[int]()
    kept.keep("a", 1)
    assert (kept.take("a"), kept.take("a")) == (1, None)
