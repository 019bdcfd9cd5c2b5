"""Data that can be entered anywhere in an epoch."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from training.preemptible.adapters.placed_data import PlacedData, own_seed

SAMPLES, BATCH = 18, 4


class Masked(Dataset[torch.Tensor]):
    """Each reading draws a mask, as collators for masked texts do."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index, int(torch.randint(1000, (1,))), random.randrange(1000)])


class Stream(IterableDataset[torch.Tensor]):
    def __iter__(self) -> Iterator[torch.Tensor]:
        return (Masked()[index] for index in torch.randperm(SAMPLES).tolist())


def _placed(data: Dataset[Any], **options: Any) -> tuple[DataLoader[Any], PlacedData]:
    loader = DataLoader(data, batch_size=BATCH, **options)
    return loader, PlacedData(loader, seed=7)


def _epochs(data: Dataset[Any], count: int, **options: Any) -> list[list[list[Any]]]:
    loader, placed = _placed(data, **options)
    read = []
    for epoch in range(count):
        placed.begin(epoch)
        batches = []
        for batch in loader:
            torch.rand(3)  # dropout
            batches.append(batch.tolist())
        read.append(batches)
    return read


ORDERS: dict[str, Callable[[], dict[str, Any]]] = {
    "shuffled": lambda: {"shuffle": True},
    "shuffled by a generator": lambda: {"shuffle": True, "generator": torch.Generator()},
    "a subset": lambda: {"sampler": SubsetRandomSampler(range(SAMPLES))},
    "weighted": lambda: {"sampler": WeightedRandomSampler([1.0] * SAMPLES, SAMPLES)},
}


@pytest.mark.parametrize("order", ORDERS)
def test_S7_what_is_skipped_unread_changes_nothing_of_what_comes(order: str) -> None:
    undisturbed = _epochs(Masked(), 2, **ORDERS[order]())
    loader, placed = _placed(Masked(), **ORDERS[order]())
    torch.rand(11)  # another attempt has drawn other numbers until here
    placed.begin(1, seen=2)
    assert [batch.tolist() for batch in loader] == undisturbed[1][2:]
    assert undisturbed[0] != undisturbed[1]


def test_S2_a_stream_that_is_read_again_is_the_same() -> None:
    undisturbed = _epochs(Stream(), 2)
    loader, placed = _placed(Stream())
    torch.rand(11)
    assert not placed.can_skip_unread
    placed.begin(1)
    assert [batch.tolist() for batch in loader] == undisturbed[1]


@pytest.mark.parametrize("data", [Masked(), Stream()])
def test_making_data_draws_no_number_of_the_training(data: Dataset[Any]) -> None:
    loader, placed = _placed(data)
    placed.begin(0)
    before = torch.get_rng_state(), random.getstate()
    assert len(list(loader)) == 5
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()


def test_ranks_draw_other_masks_over_the_same_order() -> None:
    read = []
    for rank in (0, 1):
        loader = DataLoader(Masked(), batch_size=BATCH, shuffle=True)
        PlacedData(loader, seed=7, rank=rank).begin(0)
        read.append(torch.cat(list(loader)))
    assert torch.equal(read[0][:, 0], read[1][:, 0])
    assert not torch.equal(read[0][:, 1], read[1][:, 1])


def test_S7_an_order_that_is_not_the_one_before_is_refused_in_words() -> None:
    loader, placed = _placed(Masked(), shuffle=True)
    placed.begin(0)
    list(loader)
    digest = placed.digest_after(3)
    assert digest is not None
    placed.begin(0, seen=3, expected=(3, digest))
    assert len(list(loader)) == 2
    placed.begin(0, seen=3, expected=(3, digest + 1))
    with pytest.raises(ValueError, match=r"the first 3 batches .* set_epoch\(epoch\)"):
        list(loader)


def test_it_can_be_placed_again() -> None:
    undisturbed = _epochs(Masked(), 1, shuffle=True, generator=torch.Generator())
    loader, placed = _placed(Masked(), shuffle=True, generator=torch.Generator())
    placed.begin(3)
    list(loader)
    PlacedData(loader, seed=7).begin(0)
    assert [batch.tolist() for batch in loader] == undisturbed[0]
    assert (len(loader.dataset), len(loader)) == (SAMPLES, 5)  # type: ignore[arg-type]


def test_an_order_of_single_samples_is_placed_too() -> None:
    read = []
    for _ in range(2):
        loader = DataLoader(Masked(), batch_size=None, shuffle=True)
        placed = PlacedData(loader, seed=7)
        placed.begin(1)
        read.append([int(sample[0]) for sample in loader])
    assert read[0] == read[1]
    assert sorted(read[0]) == list(range(SAMPLES))


def test_without_a_seed_of_its_own_a_loader_follows_torchs() -> None:
    torch.manual_seed(5)
    assert own_seed(DataLoader(Masked(), shuffle=True)) == 5


@pytest.mark.parametrize(("before", "now"), [(False, True), (True, False), (True, True), (False, False)])
def test_C32_S6_an_order_stays_where_a_sampler_gets_or_loses_its_generator(
    *, before: bool, now: bool
) -> None:
    """Accelerate gives a sampler one on several ranks, and none on one."""

    def made(*, has_generator: bool) -> DataLoader[Any]:
        loader = DataLoader(Masked(), batch_size=BATCH, shuffle=True)
        if has_generator:
            assert isinstance(loader.sampler, RandomSampler)
            loader.sampler.generator = torch.Generator()
        return loader

    first, second = made(has_generator=before), made(has_generator=now)
    placed = PlacedData(first, seed=7)
    placed.begin(0)
    again = PlacedData(second, seed=7, generator_seeds=placed.generator_seeds)
    again.begin(0)
    assert [batch.tolist() for batch in second] == [batch.tolist() for batch in first]
    assert again.generator_seeds == placed.generator_seeds


def test_S6_a_generator_of_the_loader_alone_leaves_its_sampler_as_it_was() -> None:
    def made() -> DataLoader[Any]:
        sampler = WeightedRandomSampler([1.0] * SAMPLES, SAMPLES)
        return DataLoader(Masked(), batch_size=BATCH, sampler=sampler, generator=torch.Generator())

    first, second = made(), made()
    placed = PlacedData(first, seed=7)
    placed.begin(0)
    PlacedData(second, seed=7, generator_seeds=placed.generator_seeds).begin(0)
    assert [batch.tolist() for batch in second] == [batch.tolist() for batch in first]
