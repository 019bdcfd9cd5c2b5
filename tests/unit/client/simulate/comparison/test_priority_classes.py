import pytest
from trainmaster_client.simulate.comparison.priority_classes import class_of, classes_of


@pytest.mark.parametrize(
    ("priorities", "labels"),
    [
        pytest.param([0, 0, 0], ["priority 0"], id="one priority is one class"),
        pytest.param([0, 200, 100], ["priority 200", "priority 100", "priority 0"], id="few stay apart"),
        pytest.param(
            [1, 2, 3, 4, 5, 6],
            ["priority 5 to 6", "priority 3 to 4", "priority 1 to 2"],
            id="many become bands",
        ),
        pytest.param(
            [0] * 90 + [1, 2, 3, 4, 5],
            ["priority 1 to 5", "priority 0"],
            id="a band is no smaller than its jobs allow",
        ),
        pytest.param([1, 2, 3, 4] + [5] * 90, ["priority 5", "priority 1 to 4"], id="nor is it all there is"),
    ],
)
def test_priorities_become_few_classes(priorities: list[int], labels: list[str]) -> None:
    assert [one.label for one in classes_of(priorities)] == labels


def test_each_priority_has_a_class_and_the_highest_weighs_most() -> None:
    classes = classes_of(range(11))
    assert [class_of(priority, classes).weight for priority in (0, 5, 10)] == [1, 3, 8]
    assert all(class_of(p, classes).lowest <= p <= class_of(p, classes).highest for p in range(11))
