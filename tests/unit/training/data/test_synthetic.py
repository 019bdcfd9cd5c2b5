import torch

from training.data.batches import Batches
from training.data.corpus import SyntheticLanguage


def _batches(*, rank: int = 0, ranks: int = 1, seed: int = 1, size: int = 4) -> Batches:
    language = SyntheticLanguage(vocabulary=256, seed=seed)
    return Batches(corpus=language, seed=seed, sequence_length=32, size=size, rank=rank, ranks=ranks)


def test_a_step_sees_the_same_tokens_in_every_attempt() -> None:
    assert torch.equal(_batches().at(7)[0], _batches().at(7)[0])


def test_the_corpus_is_what_it_was_in_earlier_releases() -> None:
    """Else a job that is updated between two attempts would go on with other data."""
    assert _batches(seed=0).at(1)[0][0, :8].tolist() == [188, 134, 219, 157, 211, 173, 10, 161]


def test_steps_and_seeds_see_different_tokens() -> None:
    batch = _batches().at(7)[0]
    assert not torch.equal(batch, _batches().at(8)[0])
    assert not torch.equal(batch, _batches(seed=2).at(7)[0])


def test_the_targets_are_the_tokens_that_follow() -> None:
    inputs, targets = _batches().at(3)
    assert inputs.shape == targets.shape == (4, 32)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])


def test_the_ranks_together_see_what_one_rank_alone_would_see() -> None:
    parts = [_batches(rank=rank, ranks=2).at(5)[0] for rank in range(2)]
    assert torch.equal(torch.cat(parts), _batches().at(5)[0])
    assert not torch.equal(parts[0], parts[1])


def test_a_token_has_at_most_four_successors_so_there_is_something_to_learn() -> None:
    successors: dict[int, set[int]] = {}
    inputs, targets = _batches(size=64).at(0)
    for token, following in zip(inputs.flatten().tolist(), targets.flatten().tolist(), strict=True):
        successors.setdefault(token, set()).add(following)
    assert max(len(found) for found in successors.values()) == 4
