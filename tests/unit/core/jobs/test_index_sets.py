"""How people write the tasks of an array, and how a set of them is kept."""

import random

import pytest
from trainmaster.core.jobs.index_sets import (
    BadIndexSetError,
    all_bits,
    bits_of,
    first_positions,
    packed,
    positions,
    ranges_text,
    read_indices,
    unpacked,
)


@pytest.mark.parametrize(
    ("text", "indices", "at_most"),
    [
        ("0-3", (0, 1, 2, 3), None),
        ("1-7:2", (1, 3, 5, 7), None),
        ("1,3,5", (1, 3, 5), None),
        ("0-63%8", tuple(range(64)), 8),
        ("0-63@8", tuple(range(64)), 8),
        ("1 3 5@8", (1, 3, 5), 8),
        ("7", (7,), None),
        ("0-3 % 2", (0, 1, 2, 3), 2),
        (" 5, 1-3 , 0 ", (5, 1, 2, 3, 0), None),
        ("0-10:5,99999", (0, 5, 10, 99999), None),
    ],
)
def test_indices_are_read_in_both_forms_and_in_their_order(text, indices, at_most):
    written = read_indices(text)

    assert (written.indices, written.at_most) == (indices, at_most)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "names no index"),
        ("%3", "names no index"),
        ("a-b", '"a-b"'),
        ("1,,2", "a comma with no index beside it"),
        ("1,2,", "a comma with no index beside it"),
        ("3-1", "3-1"),
        ("1-7:0", "step 0"),
        ("1,2,1", "index 1 twice"),
        ("0-5,3", "index 3 twice"),
        ("0-3%0", "throttle of 0"),
        ("0-3%2@2", "more than one throttle"),
        ("0-3%x", "a throttle that is not a number"),
        ("0-999999999", "99999"),
        ("-1", '"-1"'),
        ("\uff11-\uff12", "no index"),
    ],
)
def test_what_is_no_set_of_indices_is_named(text, part):
    with pytest.raises(BadIndexSetError) as refused:
        read_indices(text)

    assert part in refused.value.message
    assert refused.value.hint


def test_indices_are_written_as_ranges():
    assert ranges_text([3, 7, 8, 9]) == "3,7-9"
    assert ranges_text([]) == ""
    assert ranges_text(range(64)) == "0-63"
    assert ranges_text(range(0, 10, 2), most=2) == "0,2 and 3 more"


def test_bits_and_packed_indices_come_back_as_they_were():
    chance = random.Random(5)
    for _ in range(50):
        indices = sorted(chance.sample(range(100_000), chance.randint(1, 300)))
        bits = bits_of(indices)
        assert list(positions(bits)) == indices
        assert first_positions(bits, 7) == tuple(indices[:7])
        assert unpacked(packed(indices)) == tuple(indices)
    assert all_bits(3) == 0b111


def test_ten_thousand_indices_take_little_of_a_row():
    indices = sorted(random.Random(1).sample(range(100_000), 10_000))

    assert len(packed(indices)) < 10_500
