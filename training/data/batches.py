"""Which sequences a step and a rank see: a function of the step, so a checkpoint holds nothing of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from training.data.order import CHUNK_TOKENS, Order


class Corpus(Protocol):
    """Sequences of tokens by number. Read by one thread at a time."""

    @property
    def vocabulary(self) -> int:
        """Its tokens are below this."""

    @property
    def sequences(self) -> int | None:
        """How many there are; None: without end."""

    @property
    def identity(self) -> str:
        """The same wherever it lies, another for other tokens."""

    def rows(self, numbers: Sequence[int], length: int) -> Tensor:
        """The first ``length`` tokens of these sequences, int64, of shape (numbers, length).

        Raises:
            DataError: They cannot be read, or are not what was written.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """Each step takes the next ``size`` sequences of the order and each rank its slice of them.

    The batch of a step is the same whatever the number of ranks.
    """

    corpus: Corpus
    sequence_length: int
    size: int
    """Sequences per step, over all ranks."""
    rank: int
    ranks: int
    seed: int

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """The inputs and the tokens that follow them, both of shape (sequences, sequence_length).

        Steps count from 1, so that n steps of an n-th of the corpus are one epoch.
        """
        share = self.size // self.ranks
        tokens = self.corpus.rows(
            [self._number(step, self.rank * share + row) for row in range(share)],
            self.sequence_length + 1,
        )
        # Copies, not views of the rows: a view of other strides cannot be pinned as it is.
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def _number(self, step: int, row: int) -> int:
        if self.corpus.sequences is None:
            return step * self.size + row
        order = Order(
            sequences=self.corpus.sequences,
            chunk=max(1, CHUNK_TOKENS // self.sequence_length),
            seed=self.seed,
        )
        return order.number((step - 1) * self.size + row)
