"""Saves and loads a model with its optimizer, for any script. Every rank makes one and calls alike."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from functools import partial

from torch import nn
from torch.optim import Optimizer

from training.preemptible.checkpoint import shards
from training.preemptible.checkpoint.group import Background, Ranks, found_places
from training.preemptible.checkpoint.loader import Loader
from training.preemptible.checkpoint.manifest import Manifest
from training.preemptible.checkpoint.retention import Retention
from training.preemptible.checkpoint.saver import JobState, Saver, Status, StatusFile
from training.preemptible.checkpoint.schedule import seconds_needed
from training.preemptible.checkpoint.store import CheckpointStore

_now = partial(datetime.now, UTC)
_SECONDS_AFTER_END = {
    JobState.FAILED: 60.0,
    JobState.PREEMPTED: 5.0,
    JobState.COMPLETED: 0.0,
    JobState.RUNNING: 0.0,
}
"""Seconds that a save in flight gets after an attempt ended: its steps need no training again then.

A stop has used up its time by then, so it gets few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    step: int
    carried: Mapping[str, float]
    """The values that were given to the save."""
    seconds: Mapping[str, float]
    """Seconds of this rank by phase: look, plan, read, verify (waited for hashes), apply."""


@dataclass(eq=False, repr=False)
class Checkpointer:
    """Saves and loads the checkpoints of one training.

    Call ``load_newest`` first: it finds what is there, and nothing else may be removed later.

    What a resumed run needs beside weights and moments should follow from the step: numbers that differ
    between ranks cannot be saved.
    """

    store: CheckpointStore
    _: KW_ONLY
    model: nn.Module
    optimizer: Optimizer
    guard: Mapping[str, str] = field(default_factory=dict)
    """Options that must be the same in the training that resumes from a checkpoint."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Facts that ``newest_manifest`` shows to the attempt that resumes, before it makes its model."""
    keep: Retention = field(default_factory=Retention)
    asynchronous: bool = True
    total_steps: int = 0
    """Steps of the whole training, for ``status.json``."""
    clock: Callable[[], datetime] = _now

    def __post_init__(self) -> None:
        # The thread that saves and the one that trains talk past each other.
        self._ranks, self._ranks_of_saves = Ranks(self.store), Ranks(self.store)
        if self._ranks.group is None:
            warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        self._places = found_places(self._ranks, self.store)
        self._staging = shards.Staging() if self.asynchronous else None
        self._background = Background()
        self._saver: Saver | None = None

    @property
    def newest_step(self) -> int:
        """Return the step of the newest whole checkpoint, or 0 if there is none.

        Show it, but decide nothing by it: while a save is in flight the ranks may differ for a moment, and
        one that skips a call of the others leaves them waiting. ``save`` and ``save_within`` look for
        themselves.
        """
        return max(self._saver.whole, default=0) if self._saver else 0

    def load_newest(self) -> Resumed | None:
        """Resume from the newest whole checkpoint, whatever the number of ranks was.

        Return None if there is none.

        Raises:
            CheckpointMismatchError: It is of another training. Nothing was overwritten.
            CheckpointReadError: It should be usable, and is not.
        """
        loader = Loader(store=self.store, places=self._places, ranks=self._ranks, guard=self.guard)
        loaded = loader.load(self.model, self.optimizer)
        whole = loaded.whole
        newest = whole[max(whole)] if whole else None
        status = Status(
            step=newest.step if newest else 0, steps=self.total_steps, newest=newest, skipped=loaded.skipped
        )
        self._saver = Saver(
            store=self.store,
            places=self._places,
            ranks=self._ranks_of_saves,
            guard=self.guard,
            notes=self.notes,
            keep=self.keep,
            status=StatusFile(self.store, status, clock=self.clock),
            clock=self.clock,
            whole=whole,
        )
        if self._ranks.rank == 0:
            _try("the status could not be written", self._saver.status.resumed)
        if newest is None:
            return None
        return Resumed(step=newest.step, carried=dict(newest.carried), seconds=loaded.seconds)

    def save(self, step: int, *, carried: Mapping[str, float] | None = None) -> float:
        """Save this step, and return the seconds for which the caller was held up.

        If asynchronous, it returns when the state is copied, and a thread writes the copy.

        Raises:
            CheckpointSaveError: This save failed or, if asynchronous, the one before.
        """
        began = time.monotonic()
        self.wait()
        saver = self._ready()
        if step not in saver.whole:
            work = partial(saver.save, step, self._state(), dict(carried or {}))
            if self._staging is None:
                work()
            else:
                self._background.start(work)
        return time.monotonic() - began

    def save_within(self, step: int, seconds: float, *, carried: Mapping[str, float] | None = None) -> bool:
        """Save this step if it will be published in time on all hosts; return False if nothing was begun.

        Waits for the save in flight, and for its own. The time is what this host needs for its bytes at the
        speed of the newest save, half as much again and 5 s.
        """
        deadline = time.monotonic() + seconds
        settled = self.wait(seconds)
        saver = self._ready()
        fits = settled and (step in saver.whole or time.monotonic() + self._seconds_needed() <= deadline)
        # All ranks save or none does: one that saved alone would wait for the others for ever.
        if not all(self._ranks.gathered(fits)):
            return False
        if step not in saver.whole:
            saver.save(step, self._state(), carried or {})
        return True

    def seconds_to_save(self) -> float:
        """Estimate the seconds ``save_within`` would take from now on, a save in flight included.

        This rank estimates alone: it calls no other rank and leaves the model as it is, so this may be called
        between a forward and a backward pass.
        """
        return self._seconds_needed() * (2 if self._background.is_busy else 1)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the save in flight is published; return False if it is not after this many seconds.

        None waits as long as it takes.

        Raises:
            CheckpointSaveError: It failed.
        """
        return self._background.wait(seconds)

    def end(self, state: JobState | str, *, step: int, reason: str = "") -> None:
        """Report in ``status.json`` how the attempt ended after this step; the first rank writes it.

        A rank that fails alone may call it. It writes nothing before ``load_newest`` has accepted what is
        there. A save in flight then gets some seconds to be published. An error here is only printed: it must
        not replace the reason why the attempt ended.
        """
        state = JobState(state)
        if self._saver is not None and self._ranks.rank == 0:
            _try(
                "the status could not be written",
                partial(self._saver.status.ended, state, step=step, reason=reason),
            )
        _try("the save in flight failed", partial(self.wait, _SECONDS_AFTER_END[state]))

    def _state(self) -> shards.State:
        state = shards.state_of(self.model, self.optimizer)
        return self._staging.copied(state) if self._staging else state

    def _ready(self) -> Saver:
        if self._saver is None:
            raise RuntimeError("call load_newest() before the first save: it finds what is there")
        return self._saver

    def _seconds_needed(self) -> float:
        newest = self._newest()
        size = newest.size if newest else self._bytes()
        share = self._places.ranks_beside(self._ranks.rank) / self._ranks.size
        return seconds_needed(size * share, bytes_per_second=newest.bytes_per_second if newest else None)

    def _bytes(self) -> int:
        """Count the bytes of all ranks. Asking FSDP for the state would change what it has gathered."""
        weights = [*self.model.parameters(), *self.model.buffers()]
        return shards.bytes_of({"weights": weights, "moments": dict(self.optimizer.state)})

    def _newest(self) -> Manifest | None:
        return self._saver.whole[self.newest_step] if self._saver and self._saver.whole else None


def _try(otherwise: str, work: Callable[[], object]) -> None:
    try:
        work()
    except Exception as error:  # noqa: BLE001  it must not take the place of why the attempt ended
        print(f"{otherwise}: {error}", flush=True)
