"""Simple queues to compare with, all in the plain queue's own machinery: each differs in one thing.

All of them are strict about the head of the queue: what does not fit blocks those behind it.
"""

from collections.abc import Sequence
from typing import Any

from trainmaster_client.simulate.engine.plain_pool import Entry, PlainPool


class FirstComeFirstServed(PlainPool):
    """Starts jobs in their order (FIFO): no priorities, and none is stopped."""

    __slots__ = ()

    def turn(self, entry: Entry) -> tuple[Any, ...]:
        return (entry.past.submitted_at, entry.past.name)

    def victim(self, below: Sequence[Entry]) -> Entry | None:  # noqa: ARG002  nobody is
        return None


class StrictPriority(PlainPool):
    """Starts jobs by priority; none is stopped."""

    __slots__ = ()

    def victim(self, below: Sequence[Entry]) -> Entry | None:  # noqa: ARG002  nobody is
        return None


class NewestVictim(PlainPool):
    """Stops, of the lowest priority, the job that was submitted last.

    The plain queue takes the one that came first. Which of the two a list of training jobs gives depends on
    its order, which AWS's pages say in two ways.
    """

    __slots__ = ()

    def victim(self, below: Sequence[Entry]) -> Entry | None:
        return max(
            below,
            key=lambda entry: (-entry.found.priority, entry.past.submitted_at, entry.past.name),
            default=None,
        )


class SaversOnly(PlainPool):
    """The plain queue with a rule: a job without checkpoints is not stopped."""

    __slots__ = ()

    def victim(self, below: Sequence[Entry]) -> Entry | None:
        return super().victim(_saving(below))


class NewestSaversOnly(NewestVictim):
    """The same rule with the other tie-break."""

    __slots__ = ()

    def victim(self, below: Sequence[Entry]) -> Entry | None:
        return super().victim(_saving(below))


class LeastLoss(PlainPool):
    """The victim is who loses the least training on all its instances, in whatever lower class."""

    __slots__ = ()

    def victim(self, below: Sequence[Entry]) -> Entry | None:
        return min(
            below,
            key=lambda entry: (
                self._lost_s(entry),
                entry.found.priority,
                entry.past.submitted_at,
                entry.past.name,
            ),
            default=None,
        )

    def _lost_s(self, entry: Entry) -> float:
        """Return instance-seconds since its newest checkpoint, or since it began to train."""
        name, now = entry.past.name, self.sagemaker.event_queue.now
        saved_at = self.sagemaker.saved_at(name)
        since = self.sagemaker.runs[name].since_s if saved_at is None else self.sagemaker.second(saved_at)
        return max(now - since, 0) * sum(entry.found.shape.vector.values())


def _saving(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.past.saves_every is not None]
