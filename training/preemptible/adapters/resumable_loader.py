"""A DataLoader for Lightning whose order of the data is one and the same on every number of ranks."""

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.distributed import DistributedSampler

from training.preemptible.adapters.random_numbers import mixed


class OneOrder(DistributedSampler[int]):
    """Splits each global batch over the ranks; Lightning leaves a DistributedSampler as it is.

    Lightning's own sampler always shuffles on several ranks, and on one it is not there, so an epoch would go
    on in another order on another number of ranks.

    Args:
        dataset: With a length.
        batch_size: Samples of one rank.
        shuffle: By seed and epoch.
        drop_last: Leave out the last samples where they are fewer than a global batch. Else they are split
            too, and where they do not divide, samples from the epoch's beginning fill up.
    """

    def __init__(self, dataset: Any, batch_size: int, *, shuffle: bool, drop_last: bool) -> None:
        # Not super().__init__: it asks for the process group, which is not there yet.
        self.shuffle, self.drop_last = shuffle, drop_last
        self._samples = len(dataset)
        self.initial_seed, self.epoch = torch.initial_seed(), 0
        self._batch_size = batch_size
        self.global_batch: int | None = None
        self.replicas: tuple[int, int] | None = None
        """(number, ours); None: those of the process group."""

    @property
    def ranks(self) -> int:
        return self._replicas[0]

    @property
    def batch(self) -> int:
        """Samples of a batch over all ranks."""
        return self._batch_size * self.ranks if self.global_batch is None else self.global_batch

    def __iter__(self) -> Iterator[int]:
        ranks, rank = self._replicas
        samples = self._samples
        order = list(range(samples))
        if self.shuffle:
            numbers = torch.Generator().manual_seed(mixed(self.initial_seed, self.epoch))
            order = torch.randperm(samples, generator=numbers).tolist()
        for start in range(0, samples, self.batch):
            part = order[start : start + self.batch]
            if len(part) < self.batch and self.drop_last:
                return
            share = -(-len(part) // ranks)
            missing = share * ranks - len(part)
            part += (order * (missing // samples + 1))[:missing] if missing else []
            yield from part[rank * share : (rank + 1) * share]

    def __len__(self) -> int:
        """Samples of this rank in an epoch."""
        ranks = self.ranks
        whole, rest = divmod(self._samples, self.batch)
        last = 0 if self.drop_last else -(-rest // ranks)
        return whole * (self.batch // ranks) + last

    @property
    def _replicas(self) -> tuple[int, int]:
        if self.replicas is not None:
            return self.replicas
        return (dist.get_world_size(), dist.get_rank()) if dist.is_initialized() else (1, 0)


class ResumableLoader(DataLoader[Any]):
    """A DataLoader with which a job can go on on another number of ranks that divides its global batch.

    With a sampler or a batch sampler of its own, and over a stream, it is a DataLoader like any other: those
    resume on the number of ranks that they had.
    """

    def __init__(  # the arguments are DataLoader's own
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,  # noqa: FBT001  # DataLoader's own
        sampler: Any = None,
        batch_sampler: Any = None,
        **rest: Any,
    ) -> None:
        is_stream = isinstance(dataset, IterableDataset)
        if sampler is None and batch_sampler is None and batch_size is not None and not is_stream:
            drop_last = bool(rest.get("drop_last"))
            sampler = OneOrder(dataset, batch_size, shuffle=bool(shuffle), drop_last=drop_last)
            shuffle = None
        super().__init__(dataset, batch_size, shuffle, sampler, batch_sampler, **rest)

    def state_dict(self) -> dict[str, Any]:
        """Give what earlier adapters read; PreemptionCallback carries the place of any loader."""
        return {"seen": 0}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take what a checkpoint of an earlier adapter has; its order of the data was another."""
        if state.get("seen"):
            print("the checkpoint is of an earlier adapter: its epoch begins again", flush=True)
