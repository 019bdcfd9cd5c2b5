from collections.abc import Sequence
from dataclasses import dataclass

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from training.data.batches import IGNORED, Batches, batch_of


@dataclass(frozen=True, kw_only=True)
class Numbered:
    """Each sequence is its own number, over and over."""

    sequences: int | None
    vocabulary: int = 1_000_000
    identity: str = "numbered"
    is_masked: bool = False

    def rows(self, numbers: Sequence[int], length: int) -> Tensor:
        return torch.tensor(numbers).unsqueeze(1).repeat(1, length)

    def begins(self, numbers: Sequence[int], length: int) -> Tensor:
        """A document with every token whose number is even."""
        return self.rows(numbers, length) % 2 == 0

    def trained(self, numbers: Sequence[int], length: int) -> Tensor | None:
        return self.rows(numbers, length) % 3 == 0 if self.is_masked else None


def _batches(*, sequences: int | None, size: int, rank: int = 0, ranks: int = 1) -> Batches:
    return Batches(
        corpus=Numbered(sequences=sequences), sequence_length=4, size=size, rank=rank, ranks=ranks, seed=7
    )


def _numbers(batches: Batches, step: int) -> list[int]:
    return batches.at(step)[0][:, 0].tolist()


@settings(deadline=None)  # the first torch operation of a process takes long
@given(
    sequences=st.integers(12, 300),
    share=st.integers(1, 3),
    ranks=st.sampled_from([1, 2, 4]),
    step=st.integers(1, 400),
)
def test_any_number_of_ranks_sees_the_same_global_batch(
    sequences: int, share: int, ranks: int, step: int
) -> None:
    size = 4 * share
    alone = _numbers(_batches(sequences=sequences, size=size), step)
    parts = [_batches(sequences=sequences, size=size, rank=rank, ranks=ranks) for rank in range(ranks)]
    assert [number for part in parts for number in _numbers(part, step)] == alone


@settings(deadline=None)  # the first torch operation of a process takes long
@given(step=st.integers(1, 40))
def test_a_run_resumed_at_any_step_sees_what_the_uninterrupted_one_sees(step: int) -> None:
    """Nothing but the step goes in: no batch before it was read."""
    uninterrupted = _batches(sequences=50, size=4)
    seen = [_numbers(uninterrupted, one) for one in range(1, step + 3)]
    resumed = _batches(sequences=50, size=4)
    assert [_numbers(resumed, one) for one in range(step, step + 3)] == seen[step - 1 :]


def test_an_epoch_begins_with_step_1_and_has_every_sequence_once() -> None:
    batches = _batches(sequences=60, size=12)
    for first in (1, 6, 11):
        epoch = [number for step in range(first, first + 5) for number in _numbers(batches, step)]
        assert sorted(epoch) == list(range(60))


def test_epochs_roll_over_within_a_batch() -> None:
    batches = _batches(sequences=10, size=4)
    seen = [number for step in range(1, 6) for number in _numbers(batches, step)]
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))


def test_a_large_corpus_is_read_as_in_earlier_releases() -> None:
    """Else a job that is updated between two attempts would go on with other data."""
    batches = Batches(
        corpus=Numbered(sequences=1_000_000), sequence_length=4096, size=4, rank=0, ranks=1, seed=7
    )
    assert [_numbers(batches, step) for step in (1, 2, 3000)] == [
        [561088, 561960, 710295, 203861],
        [100553, 324812, 897826, 825943],
        [37874, 412700, 455452, 598674],
    ]


def test_a_corpus_without_end_is_read_in_its_own_order() -> None:
    assert _numbers(_batches(sequences=None, size=4), 3) == [12, 13, 14, 15]


def test_inputs_and_targets_are_whole_tensors_that_can_be_pinned() -> None:
    inputs, targets = _batches(sequences=10, size=2).at(1)
    assert inputs.is_contiguous()
    assert targets.is_contiguous()
    assert inputs.shape == targets.shape == (2, 4)


def test_what_is_not_trained_is_no_target_and_neither_is_the_first_token_of_another_document() -> None:
    corpus = Counting()
    plain = batch_of(corpus, [10], 6, by_document=False)
    assert plain[0].tolist() == [[10, 11, 12, 13, 14, 15]]
    assert plain[1].tolist() == [[IGNORED, 12, IGNORED, IGNORED, 15, IGNORED]]
    inputs, targets, documents = batch_of(corpus, [10], 6, by_document=True)
    assert inputs.tolist() == plain[0].tolist()
    assert targets.tolist() == [[IGNORED, IGNORED, IGNORED, IGNORED, 15, IGNORED]]
    assert documents.tolist() == [[0, 0, 1, 1, 1, 1]]


@dataclass(frozen=True)
class Counting(Numbered):
    """Sequence n is n, n + 1, ...; a document begins with every twelfth, multiples of three are trained."""

    sequences: int | None = None

    def rows(self, numbers: Sequence[int], length: int) -> Tensor:
        return torch.tensor(numbers).unsqueeze(1) + torch.arange(length)

    def begins(self, numbers: Sequence[int], length: int) -> Tensor:
        return self.rows(numbers, length) % 12 == 0

    is_masked: bool = True
