"""Shape of a model of the training program, whatever its family, for the arithmetic of memory and traffic."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple


class Parameters(NamedTuple):
    """Some parameters of one shape; a vector has one column. FSDP divides the rows."""

    number: int
    rows: int
    columns: int
    is_flat: bool = True
    """Whether it has at most two dimensions; others have the moments of a vector with adamw_8bit."""


class TransformerShape(ABC):
    """A model of any family, with all that the arithmetic needs."""

    __slots__ = ()

    samples: ClassVar[str]
    """Unit of a batch, in the plural."""
    layers: int
    width: int
    heads: int
    head_width: int

    @property
    @abstractmethod
    def sequence_length(self) -> int:
        """Tokens of a sample."""

    @property
    @abstractmethod
    def block(self) -> tuple[Parameters, ...]: ...

    @property
    @abstractmethod
    def embedding(self) -> tuple[Parameters, ...]:
        """The embedding, a unit of its own."""

    @property
    @abstractmethod
    def head(self) -> tuple[Parameters, ...]:
        """The head with the last norm: a unit that stays gathered, as the backward pass begins with it."""

    @abstractmethod
    def adapters(self, targets: tuple[str, ...], rank: int) -> tuple[Parameters, ...]:
        """Return the adapters of one block: two matrices for each target, of its inputs and its outputs."""

    @property
    @abstractmethod
    def matrix_elements_outside(self) -> int:
        """Multiplications of a sample in matrices outside of blocks."""

    @abstractmethod
    def indivisible(self, ranks: int) -> Mapping[str, int]:
        """Return the dimensions that this many ranks of a tensor group cannot divide."""

    @abstractmethod
    def token_ranks(self, tensor: int) -> int:
        """Return the number of ranks that the tokens are divided among between matrices."""

    @abstractmethod
    def whole_block(self, width: int, tensor: int) -> int:
        """Return the bytes of a token that one block keeps.

        If ``tensor`` ranks divide matrices, their inputs are gathered and kept so; norms and inputs of blocks
        are of a part of the tokens. ``width`` is the bytes of a number that is computed with.
        """

    @abstractmethod
    def costly_part(self, width: int) -> int:
        """Return the bytes of a token that one block keeps if all cheap parts are computed again."""

    @abstractmethod
    def outside_bytes(self, width: int) -> int:
        """Return the bytes of a sample that a step needs outside of blocks."""

    @abstractmethod
    def exchanges(self, tensor: int, *, again: bool) -> int:
        """Count how often the tokens between matrices are gathered or scattered in a step.

        A sum counts as both.
        """

    @abstractmethod
    def shared_gradients(self, tensor: int) -> int:
        """Count the weights that every rank of a tensor group has, each with a part of the gradient."""

    @property
    @abstractmethod
    def loss_terms(self) -> int:
        """Numbers of a sample that a tensor group exchanges for the loss, twice each."""

    @property
    def query_width(self) -> int:
        return self.head_width * self.heads

    @property
    def root(self) -> tuple[Parameters, ...]:
        """All parameters outside of blocks."""
        return (*self.embedding, *self.head)

    @property
    def block_params(self) -> int:
        return elements(self.block, shards=1)

    @property
    def matrix_elements(self) -> int:
        """Number of elements in the matrices of one block."""
        return elements(tuple(part for part in self.block if part.columns > 1), shards=1)

    @property
    def head_params(self) -> int:
        return elements(self.head, shards=1)

    @property
    def params(self) -> int:
        return self.largest_shard(1)

    def largest_shard(self, shards: int) -> int:
        """Return the elements on the rank that has most: rows of each parameter are divided, rounded up.

        Source: PyTorch documentation, torch.distributed.fsdp.fully_shard: sharded like torch.chunk on
        dimension 0, and padded to even sizes.
        """
        return self.layers * elements(self.block, shards) + elements(self.root, shards)


def elements(parameters: tuple[Parameters, ...], shards: int) -> int:
    return sum(part.number * -(-part.rows // shards) * part.columns for part in parameters)
