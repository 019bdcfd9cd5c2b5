import pytest

from training.preemptible.checkpoint.retention import Retention, kept


@pytest.mark.parametrize(
    ("steps", "keep", "expected"),
    [
        pytest.param([5, 10, 15], Retention(), {10, 15}, id="two, when nothing else is asked for"),
        pytest.param([5], Retention(newest=3), {5}, id="fewer than may stay"),
        pytest.param([10, 15, 20, 25], Retention(newest=1, every=10), {10, 20, 25}, id="every tenth too"),
        pytest.param([], Retention(), set(), id="none"),
    ],
)
def test_what_is_kept(steps: list[int], keep: Retention, expected: set[int]) -> None:
    assert kept(steps, keep) == expected


@pytest.mark.parametrize("values", [{"newest": 0}, {"every": -1}])
def test_keeping_none_is_refused(values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="keep at least one"):
        Retention(**values)
