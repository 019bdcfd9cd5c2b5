"""Reads how Accelerate split a loader, and keeps its global batches on another number of ranks."""

from typing import Any

from accelerate import Accelerator
from accelerate.data_loader import BatchSamplerShard, DataLoaderDispatcher, IterableDatasetShard
from accelerate.scheduler import AcceleratedScheduler
from torch.utils.data import BatchSampler, DataLoader, IterableDataset

from training.preemptible.adapters.widths import DataWidth, only_on, share_of

_KEPT = (
    "collate_fn",
    "num_workers",
    "pin_memory",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
    "prefetch_factor",
    "persistent_workers",
)
"""Arguments of a DataLoader that have nothing to do with the size of its batches."""


def base_of(loader: Any) -> Any:
    """Find torch's own loader inside Accelerate's."""
    return getattr(loader, "base_dataloader", loader)


def width_of(accelerator: Accelerator, loader: Any) -> DataWidth:
    """Read how many ranks share a batch of this loader, and how many samples it has; 0 where it varies."""
    ranks, sampler, is_split = accelerator.num_processes, getattr(loader, "batch_sampler", None), False
    if isinstance(loader, DataLoaderDispatcher):
        is_split = loader.split_batches
    for part in (sampler, getattr(loader, "dataset", None)):
        if isinstance(part, BatchSamplerShard | IterableDatasetShard):
            ranks, is_split, sampler = part.num_processes, part.split_batches, part
    size = getattr(sampler, "batch_size", None) or getattr(base_of(loader), "batch_size", None) or 0
    return DataWidth(ranks=ranks, batch=size if is_split else size * ranks)


def on_this_width(accelerator: Accelerator, loader: Any, before: DataWidth) -> Any:
    """Give the loader whose global batches are those that the job began with.

    Args:
        accelerator: What prepared it.
        loader: As the script made it for this attempt.
        before: Of the attempt before; its batch is the job's from its first attempt on.

    Raises:
        ValueError: The batch does not divide, or the data can be split in one way only; it says which
            numbers of ranks fit.
    """
    now = width_of(accelerator, loader)
    if now.ranks == before.ranks and now.batch != before.batch:
        raise ValueError(
            f"this job began with a global batch of {before.batch} samples, and now it has {now.batch}: "
            "set batch_size back, or use another folder"
        )
    if now.batch == before.batch > 0 or now.ranks == before.ranks:
        return loader  # the script or split_batches=True divides the batch itself
    if before.batch == 0 or now.batch == 0:
        raise only_on(before.ranks, now=now.ranks, why="its batch sampler makes batches that vary in size")
    share = share_of(before.batch, now.ranks, tried_with=before.ranks)
    return accelerator.prepare_data_loader(_with_batches_of(loader, share, before, now))


def keep_rates(accelerator: Accelerator, ranks: int) -> None:
    """Step learning rates as often a step as on the number of ranks that the job began with.

    Accelerate steps a scheduler once for each rank, as if more ranks had a larger batch; here it is kept.
    """
    if accelerator.num_processes == ranks:
        return
    for scheduler in accelerator._schedulers:
        if isinstance(scheduler, AcceleratedScheduler) and not scheduler.split_batches:
            _step_for(scheduler, ranks)


def _step_for(scheduler: Any, ranks: int) -> None:
    step_once, scheduler.split_batches = scheduler.step, True

    def step(*arguments: Any, **named: Any) -> None:
        for _ in range(ranks if scheduler.gradient_state.sync_gradients else 1):
            inner = scheduler.scheduler
            if inner._step_count <= getattr(inner, "total_steps", inner._step_count):
                step_once(*arguments, **named)

    scheduler.step = step


def _with_batches_of(loader: Any, share: int, before: DataWidth, now: DataWidth) -> DataLoader[Any]:
    base = base_of(loader)
    if base is loader:
        raise only_on(before.ranks, now=now.ranks, why="accelerator.prepare did not get its loader")
    kept = {name: getattr(base, name) for name in _KEPT}
    if isinstance(base.dataset, IterableDataset):
        if base.num_workers:
            why = "workers (num_workers) make batches of a stream, each its own"
            raise only_on(before.ranks, now=now.ranks, why=why)
        return DataLoader(_stream_in(loader, before, now), batch_size=share, drop_last=base.drop_last, **kept)
    sampler = base.batch_sampler
    if isinstance(sampler, BatchSamplerShard):
        sampler = sampler.batch_sampler
    if type(sampler) is not BatchSampler:
        why = f"{type(sampler).__name__} makes its batches in a way of its own"
        raise only_on(before.ranks, now=now.ranks, why=why)
    batches = BatchSampler(sampler.sampler, share, sampler.drop_last)
    return DataLoader(base.dataset, batch_sampler=batches, **kept)


def _stream_in(loader: Any, before: DataWidth, now: DataWidth) -> Any:
    if isinstance(loader.dataset, IterableDatasetShard):
        return loader.dataset.dataset
    if now.ranks > 1 and not isinstance(loader, DataLoaderDispatcher):
        raise only_on(before.ranks, now=now.ranks, why="each rank reads shards of its own of the stream")
    return loader.dataset
