"""Widths as people write them, and run time by width."""

from datetime import timedelta

import pytest
from trainmaster.core.jobs.elastic_state import LONGEST_RUN, RunTimeLimits, at_largest, run_time_at
from trainmaster.core.jobs.widths import MOST_WIDTHS, BadWidthsError, Widths, read_widths

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "counts"),
    [("2-4", (2, 3, 4)), ("2-8:2", (2, 4, 6, 8)), ("2 4 8", (2, 4, 8)), ("1-64", tuple(range(1, 65)))],
)
def test_ranges_steps_and_lists_are_read(text: str, counts: tuple[int, ...]) -> None:
    widths = read_widths(text)
    assert (widths.counts, widths.least, widths.largest) == (counts, counts[0], counts[-1])


@pytest.mark.parametrize(
    "text",
    ["", "8-2", "0-4", "0 2", "2", "2-2", "2 2 4", "4 2", "2,4,8", "2-8:0", "2-9:2", " 2-8", "2-8 ", "-4",
     "a-b", "2..8", "1-1000000", f"1-{MOST_WIDTHS + 1}", "\u0662-8", "2-8:-1", "2  4"],
)  # fmt: skip
def test_a_text_that_names_no_widths_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadWidthsError) as caught:
        read_widths(text)
    assert any(character.isdigit() for character in caught.value.hint) or "step" in caught.value.hint


def test_run_time_at_a_width_is_what_is_left_in_instance_seconds() -> None:
    widths = Widths(counts=(1, 2, 4))
    left = [run_time_at(width, 10 * HOUR, widths) for width in widths.counts]
    assert left == [40 * HOUR, 20 * HOUR, 10 * HOUR]


def test_run_time_at_a_width_is_at_most_what_sagemaker_takes() -> None:
    assert run_time_at(1, timedelta(days=10), Widths(counts=(1, 4))) == LONGEST_RUN


def test_a_refused_run_time_leaves_only_shorter_ones() -> None:
    limits = RunTimeLimits().after_refusal(20 * HOUR)
    widths = Widths(counts=(1, 2, 3, 4))
    left = [run_time_at(width, 12 * HOUR, widths, limits) for width in widths.counts]
    assert left == [None, None, 16 * HOUR, 12 * HOUR]


def test_a_refused_run_time_is_cut_to_the_longest_that_was_granted() -> None:
    limits = RunTimeLimits().after_refusal(20 * HOUR).after_grant(16 * HOUR).after_grant(HOUR)
    assert run_time_at(1, 12 * HOUR, Widths(counts=(1, 4)), limits) == 16 * HOUR


def test_a_grant_as_long_as_the_refusal_ends_it() -> None:
    assert RunTimeLimits().after_refusal(HOUR).after_grant(HOUR) == RunTimeLimits(granted=HOUR)


def test_training_counts_as_if_at_the_largest_width() -> None:
    assert at_largest(2 * HOUR, 1, 4) == HOUR / 2
