"""Lightning's loaders of training data, each entered where the attempt before left the epoch."""

from collections.abc import Callable
from typing import Any

from lightning.pytorch import Trainer
from torch.utils.data import DataLoader, IterableDataset

from training.preemptible.adapters.carried import agreed, rank
from training.preemptible.adapters.placed_data import PlacedData, own_seed, workers_of
from training.preemptible.adapters.resumable_loader import OneOrder
from training.preemptible.adapters.widths import DataWidth, check_workers, only_on, share_of


class TrainingData:
    """The loaders of one fit, in the order in which Lightning prepares them.

    Args:
        trainer: Whose loaders they are.
        carried: By ``state`` of the attempt before, with its epoch and the batches seen; None: none.
    """

    def __init__(self, trainer: Trainer, carried: dict[str, Any] | None = None) -> None:
        self._trainer = trainer
        self._loaders: list[Any] = []
        self._placed: list[PlacedData | None] = []
        self._seeds: list[Any] = []
        self._carried, self._has_entered = carried, False

    def add(self, loader: Any, epoch: int) -> None:
        """Place one more loader, before it is iterated for this epoch.

        Raises:
            ValueError: It cannot go on on this number of ranks, or with this number of workers.
        """
        before = self._carried_of(len(self._loaders))
        self._loaders.append(loader)
        if not isinstance(loader, DataLoader):
            self._placed.append(None)
            self._seeds.append(None)
            return
        if before is not None:
            _fit_width(loader, DataWidth(**before["width"]), now=self._ranks)
            check_workers(workers_of(loader), before=before["workers"])
        if isinstance(order := loader.sampler, OneOrder):
            order.replicas = (self._ranks, self._rank)
            order.global_batch = order.batch
        seed, generators = before["data"] if before else (agreed(own_seed(loader)), None)
        placed = PlacedData(loader, seed=seed, rank=rank(), generator_seeds=generators)
        self._placed.append(placed)
        self._seeds.append((seed, agreed(placed.generator_seeds)))
        if self._carried is None or self._has_entered:
            placed.begin(epoch)
        else:
            self._enter(len(self._loaders) - 1)

    def begin(self, epoch: int) -> None:
        """Call before the loaders are iterated for one more epoch."""
        for placed in self._placed:
            if placed is not None:
                placed.begin(epoch)

    def forget(self) -> None:
        """Call before Lightning prepares its loaders again."""
        self._loaders, self._placed, self._seeds = [], [], []

    def enter(self, fetcher: Any, *, go_on: Callable[[], None]) -> None:
        """Bring Lightning's fetcher to the place in the epoch; what cannot be skipped is read and dropped.

        Args:
            fetcher: Lightning's, at the beginning of the epoch.
            go_on: Called before each batch that is read; it may leave.
        """
        assert self._carried is not None
        seen, self._has_entered = self._carried["seen"], True
        if self._skips_unread:
            fetcher.fetched += seen
            if fetcher.length is not None:
                fetcher.done = fetcher.fetched >= fetcher.length
            return
        for _ in range(seen):
            go_on()
            next(fetcher, None)

    def state(self, epoch: int, seen: int) -> dict[str, Any]:
        """Say where the data are, for the next attempt."""
        loaders = [self._state_of(number, seen) for number in range(len(self._loaders))]
        return {"epoch": epoch, "seen": seen, "loaders": loaders}

    def _state_of(self, number: int, seen: int) -> dict[str, Any] | None:
        loader, placed = self._loaders[number], self._placed[number]
        if placed is None:
            return None
        batch = loader.sampler.batch if isinstance(loader.sampler, OneOrder) else 0
        return {
            "width": {"ranks": self._ranks, "batch": batch},
            "workers": workers_of(loader),
            "data": self._seeds[number],
            "digest": placed.digest_after(seen),
        }

    def _enter(self, number: int) -> None:
        placed, carried = self._placed[number], self._carried
        before = self._carried_of(number)
        assert placed is not None
        assert carried is not None
        is_same = before is not None and before["width"]["ranks"] == self._ranks
        digest = before["digest"] if before is not None and is_same else None
        seen = carried["seen"] if self._skips_unread else 0
        placed.begin(carried["epoch"], seen=seen, expected=(seen, digest))

    def _carried_of(self, number: int) -> dict[str, Any] | None:
        if self._carried is None or number >= len(self._carried["loaders"]):
            return None
        state: dict[str, Any] | None = self._carried["loaders"][number]
        return state

    @property
    def _skips_unread(self) -> bool:
        """One loader skips by itself; of several, the shorter ones begin again within the epoch."""
        placed = self._placed[0] if len(self._placed) == 1 else None
        count = len(self._carried["loaders"]) if self._carried is not None else len(self._loaders)
        return count == 1 and placed is not None and placed.can_skip_unread

    @property
    def _ranks(self) -> int:
        kwargs = self._trainer.distributed_sampler_kwargs or {}
        return int(kwargs.get("num_replicas", self._trainer.world_size))

    @property
    def _rank(self) -> int:
        kwargs = self._trainer.distributed_sampler_kwargs or {}
        return int(kwargs.get("rank", self._trainer.global_rank))


def _fit_width(loader: DataLoader[Any], before: DataWidth, *, now: int) -> None:
    order = loader.sampler
    if isinstance(order, OneOrder) and before.batch:
        share = share_of(before.batch, now, tried_with=before.ranks)
        order.global_batch, loader.batch_sampler.batch_size = before.batch, share  # type: ignore[union-attr]
        return
    if now == before.ranks:
        return
    if isinstance(loader.dataset, IterableDataset):
        raise only_on(before.ranks, now=now, why="each rank reads a part of its own of the stream")
    why = "its order is that of one number of ranks (ResumableLoader's, with a batch_size, is not)"
    raise only_on(before.ranks, now=now, why=why)
