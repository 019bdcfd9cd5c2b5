"""The figures of the page for managers are those of the benchmark and of the guide to the costs."""

import re

from tests.markdown import table, text_of

PAGE = text_of("docs/managers.md")
BENCHMARKS = text_of("docs/benchmarks.md")
COST = text_of("docs/guides/cost.md")


def number(text: str) -> float:
    (found,) = re.findall(r"\d+(?:\.\d+)?", text.replace(",", ""))[:1]
    return float(found)


MEASURED = {
    row[0]: row
    for row in table(
        BENCHMARKS, "measured", "plain queue", "default policy", "ratio", "with `order.shortest_first`"
    )
}
SAID = table(PAGE, "figure", "plain priority queue", "trainmaster", "the difference")


def test_waste_start_up_and_delay_are_those_that_were_measured() -> None:
    for said, figure in zip(
        (SAID[0], SAID[1], SAID[3]),
        ("waste, GPU-hours", "start-up, GPU-hours", "weighted delay, hours"),
        strict=True,
    ):
        _, plain, product, ratio, _ = MEASURED[figure]
        assert (number(said[1]), number(said[2])) == (number(plain), number(product))
        assert number(said[3]) == round(100 * (1 - number(ratio)))


def test_useful_work_is_the_goodput() -> None:
    _, plain, product, ratio, _ = MEASURED["goodput"]
    assert number(SAID[2][1]) == round(100 * number(plain), 1)
    assert number(SAID[2][2]) == round(100 * number(product), 1)
    assert number(SAID[2][3]) == round(100 * (number(ratio) - 1), 1)


def test_the_delay_with_shortest_first_is_the_ratio_of_the_plain_one() -> None:
    _, plain, _, _, ratio = MEASURED["weighted delay, hours"]
    assert number(SAID[4][1]) == number(plain)
    assert number(SAID[4][2]) == round(number(plain) * number(ratio), 2)
    assert number(SAID[4][3]) == round(100 * (1 - number(ratio)))


def test_every_difference_says_its_direction_and_its_baseline() -> None:
    for row in SAID[:-1]:
        assert re.search(r"\b(less|more|shorter) .*than the plain queue$", row[3]), row


def test_costs_are_those_of_the_guide() -> None:
    said = {row[0]: number(row[1]) for row in table(PAGE, "", "USD a month") if "each" not in row[0]}
    stack, endpoint = (
        number(found) for found in re.findall(r"about (\d+) USD a month, and (\d+) more", COST)[0]
    )
    million = dict(row[:2] for row in table(COST, "", "USD"))["a million jobs"]
    assert said["the stack, with one pool and no jobs"] == stack
    assert said["a private endpoint, if you have none to share"] == endpoint
    assert said["a million jobs"] == round(number(million), -1)
