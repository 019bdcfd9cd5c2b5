"""The global batch on another number of ranks."""

from types import SimpleNamespace

import pytest
from torch.utils.data import Dataset

from training.preemptible.adapters.hf_width import StepWidth, check_width
from training.preemptible.adapters.resumable_loader import OneOrder
from training.preemptible.adapters.widths import check_workers, only_on, share_of


class Numbers(Dataset[int]):
    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples


def _epoch(samples: int, ranks: int, *, batch: int = 8, drop_last: bool = False) -> list[list[list[int]]]:
    """Global batches of an epoch, each by rank."""
    share = batch // ranks
    orders = []
    for rank in range(ranks):
        order = OneOrder(Numbers(samples), share, shuffle=True, drop_last=drop_last)
        order.initial_seed, order.replicas, order.global_batch = 7, (ranks, rank), batch
        given = list(order)
        assert len(given) == len(order)
        orders.append([given[start : start + share] for start in range(0, len(given), share)])
    return [list(parts) for parts in zip(*orders, strict=True)]


def test_S6_a_batch_is_split_over_the_ranks_that_divide_it() -> None:
    assert share_of(8, 2, tried_with=1) == 4


@pytest.mark.parametrize(
    ("batch", "ranks", "words"),
    [
        (8, 3, r"3 ranks cannot share the global batch of 8 .* 1 rank.*: run it on 1, 2, 4 or 8 ranks"),
        (1, 2, "run it on 1 rank$"),
    ],
)
def test_S6_the_refusal_names_the_numbers_that_divide(batch: int, ranks: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        share_of(batch, ranks, tried_with=1)


def test_S6_what_cannot_be_split_goes_on_where_it_was() -> None:
    assert str(only_on(1, now=2, why="it is so")) == (
        "this attempt has 2 ranks, the one before had 1 rank, and it is so: run it on 1 rank again"
    )


def test_S2_another_number_of_workers_is_refused() -> None:
    check_workers(None, before=None)
    check_workers(2, before=2)
    with pytest.raises(ValueError, match=r"num_workers=4, the one before had 2.*set it to 2 again"):
        check_workers(4, before=2)


@pytest.mark.parametrize("samples", [32, 30, 29])
def test_S6_each_global_batch_has_the_same_samples_on_every_number_of_ranks(samples: int) -> None:
    alone = [set(parts[0]) for parts in _epoch(samples, 1)]
    assert set.union(*alone) == set(range(samples))
    for ranks in (2, 4, 8):
        batches = _epoch(samples, ranks)
        assert [set().union(*parts) for parts in batches[:-1]] == alone[:-1]
        assert set().union(*batches[-1]) >= alone[-1]  # filled up where it does not divide
        assert all(len({len(part) for part in parts}) == 1 for parts in batches)


def test_S6_each_sample_comes_once_where_the_last_batch_divides() -> None:
    for samples in (32, 30):
        given = [index for parts in _epoch(samples, 2) for part in parts for index in part]
        assert sorted(given) == list(range(samples))


def test_the_last_batch_may_be_left_out() -> None:
    assert sum(len(part) for parts in _epoch(30, 2, drop_last=True) for part in parts) == 24


def test_an_epoch_smaller_than_the_ranks_fills_every_rank() -> None:
    assert [len(part) for part in _epoch(3, 8)[0]] == [1] * 8


def _width(ranks: int, share: int, accumulated: int, steps: int = 10) -> StepWidth:
    batch = ranks * share
    return StepWidth(ranks=ranks, share=share, batch=batch, step=batch * accumulated, steps=steps)


@pytest.mark.parametrize("now", [_width(2, 4, 1), _width(1, 4, 2), _width(1, 2, 4), _width(4, 2, 1)])
def test_S6_steps_of_the_same_samples_go_on(now: StepWidth) -> None:
    check_width(now, before=_width(2, 4, 1))


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (
            _width(1, 4, 1),
            "began with 8 samples a step, and 1 rank .* make 4: set gradient_accumulation_steps=2",
        ),
        (_width(3, 4, 1), "with batches of 4 it fits on these numbers of ranks: 1, 2"),
        (
            _width(1, 16, 1),
            "set per_device_train_batch_size to at most 8, on these numbers of ranks: 1, 2, 4, 8",
        ),
        (_width(1, 4, 2, steps=11), "11 steps on 1 rank and had 10: set dataloader_drop_last=False"),
    ],
)
def test_S6_other_steps_are_refused_with_what_to_set(now: StepWidth, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_width(now, before=_width(2, 4, 1))


def test_S6_a_stream_goes_on_with_other_steps_on_other_ranks() -> None:
    check_width(_width(1, 4, 2, steps=0), before=_width(2, 4, 1, steps=0))
    check_width(_width(1, 4, 2, steps=0), before=_width(2, 4, 1, steps=6))  # as earlier adapters wrote it


@pytest.mark.parametrize(("data", "steps"), [([1, 2], 10), (iter([1, 2]), 0)], ids=["a list", "a stream"])
def test_S6_steps_of_an_epoch_are_those_of_data_with_a_length(data: object, steps: int) -> None:
    config = SimpleNamespace(split_batches=False)
    args = SimpleNamespace(gradient_accumulation_steps=2, accelerator_config=config)
    trainer = SimpleNamespace(
        args=args, _train_batch_size=4, train_dataset=data, get_total_train_batch_size=lambda _args: 16
    )
    assert StepWidth.of(trainer, 10) == _width(2, 4, 2, steps=steps)
