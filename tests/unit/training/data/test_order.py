import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.data.batches import _TABLED, WINDOW_CHUNKS, Order, _mixed, permuted

KEYS = st.integers(0, 2**63 - 1)


@given(size=st.integers(1, 400), key=KEYS)
def test_a_permutation_takes_each_number_to_a_place_of_its_own(size: int, key: int) -> None:
    assert sorted(permuted(index, size, key=key) for index in range(size)) == list(range(size))


@pytest.mark.parametrize("size", [_TABLED.start - 1, _TABLED.start, 1040, 2**15 + 1])
@pytest.mark.parametrize("key", [0, 1, 0xC0FFEE, 2**63 - 1])
def test_a_permutation_that_is_computed_at_once_is_the_same(size: int, key: int) -> None:
    indexes = [*range(0, size, size // 100), size - 1]
    assert [_mixed(index, size, key=key) for index in indexes] == [
        permuted(index, size, key=key) for index in indexes
    ]


@given(
    sequences=st.integers(1, 500), chunk=st.integers(1, 9), seed=st.integers(0, 9), epoch=st.integers(0, 3)
)
def test_an_epoch_has_every_sequence_once(sequences: int, chunk: int, seed: int, epoch: int) -> None:
    order = Order(sequences=sequences, chunk=chunk, seed=seed)
    places = range(epoch * sequences, (epoch + 1) * sequences)
    assert sorted(order.number(place) for place in places) == list(range(sequences))


def test_seeds_and_epochs_have_orders_of_their_own() -> None:
    order = Order(sequences=1000, chunk=10, seed=1)
    first = [order.number(place) for place in range(1000)]
    second = [order.number(place) for place in range(1000, 2000)]
    other = [Order(sequences=1000, chunk=10, seed=2).number(place) for place in range(1000)]
    # Two random orders of 1,000 agree in about one place.
    for one, another in ((first, second), (first, other), (first, list(range(1000)))):
        assert sum(a == b for a, b in zip(one, another, strict=True)) < 10


def test_the_order_is_what_it_was_in_earlier_releases() -> None:
    """Else a job that is updated between two attempts would go on with other data."""
    order = Order(sequences=1000, chunk=4, seed=1)
    assert [order.number(place) for place in (0, 1, 2, 3, 998, 999, 1000, 1001)] == [
        264,
        265,
        157,
        620,
        454,
        771,
        518,
        154,
    ]


def test_a_window_reads_no_more_chunks_than_its_own() -> None:
    """So that a reader that keeps a window's blocks reads each block once an epoch."""
    chunk, windows = 5, 4
    size = WINDOW_CHUNKS * chunk
    order = Order(sequences=size * windows, chunk=chunk, seed=3)
    for window in range(windows):
        numbers = [order.number(place) for place in range(window * size, (window + 1) * size)]
        assert len({number // chunk for number in numbers}) == WINDOW_CHUNKS


def test_a_batch_comes_from_all_over_the_corpus() -> None:
    order = Order(sequences=64 * 40 * 10, chunk=10, seed=3)
    batch = [order.number(place) for place in range(32)]
    assert len({number // 10 for number in batch}) > 20
    assert min(batch) < 64 * 10 * 10
    assert max(batch) > 64 * 30 * 10


@pytest.mark.parametrize("sequences", [1, 2, 3])
def test_a_corpus_may_be_as_small_as_it_likes(sequences: int) -> None:
    order = Order(sequences=sequences, chunk=128, seed=0)
    assert {order.number(place) for place in range(sequences)} == set(range(sequences))
