"""From where an upgrade is tried: the tags are found by themselves."""

import pytest

from tests.upgrade.commits import EARLIEST, ONE_ORDER, is_here, is_since, newest_release


@pytest.mark.parametrize(
    ("tags", "newest"),
    [
        pytest.param([], None, id="no tag"),
        pytest.param(["nightly", "v1", "v0.2.0-rc.1"], None, id="no release among them"),
        pytest.param(["v0.1.0"], "v0.1.0", id="the first"),
        pytest.param(["v0.10.0", "v0.9.3", "v0.2.0"], "v0.10.0", id="by number, not by letter"),
    ],
)
def test_the_newest_release_is_the_one_with_the_highest_version(tags: list[str], newest: str | None) -> None:
    assert newest_release(tags) == newest


@pytest.mark.skipif(not is_here(EARLIEST), reason="a shallow clone has no earlier commits")
def test_the_oldest_stack_is_older_than_the_one_order_of_the_pool() -> None:
    assert is_since(ONE_ORDER, EARLIEST)
    assert is_since(ONE_ORDER, ONE_ORDER)
    assert not is_since(EARLIEST, ONE_ORDER)
