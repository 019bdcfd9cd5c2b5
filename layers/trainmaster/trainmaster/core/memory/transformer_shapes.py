"""What the arithmetic of memory and traffic asks of a model of the training program, whatever its family."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple


class Parameters(NamedTuple):
    """Some parameters of one shape; a vector has one column. FSDP divides the rows."""

    number: int
    rows: int
    columns: int
    is_flat: bool = True
    """At most two dimensions; of others adamw_8bit has the moments of a vector."""


class TransformerShape(ABC):
    """A model of any family: what its arithmetic asks."""

    __slots__ = ()

    samples: ClassVar[str]
    """What a batch consists of."""
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
        """A unit of its own."""

    @property
    @abstractmethod
    def head(self) -> tuple[Parameters, ...]:
        """With the last norm: a unit that stays gathered, as the backward pass begins with it."""

    @abstractmethod
    def adapters(self, targets: tuple[str, ...], rank: int) -> tuple[Parameters, ...]:
        """Of one block: two matrices beside each target, of its inputs and of its outputs."""

    @property
    @abstractmethod
    def matrix_elements_outside(self) -> int:
        """Multiplications of a sample in matrices outside of blocks."""

    @abstractmethod
    def indivisible(self, ranks: int) -> Mapping[str, int]:
        """Dimensions that cannot be divided among so many ranks of a tensor group."""

    @abstractmethod
    def token_ranks(self, tensor: int) -> int:
        """Among how many ranks the tokens are divided between matrices."""

    @abstractmethod
    def whole_block(self, width: int, tensor: int) -> int:
        """Bytes of a token that one block keeps; ``width``: of a number that is computed with.

        With ``tensor`` ranks that divide matrices, their inputs are gathered and kept so; norms and inputs of
        blocks are of a part of the tokens.
        """

    @abstractmethod
    def costly_part(self, width: int) -> int:
        """Likewise, of what is kept where all else is computed again."""

    @abstractmethod
    def outside_bytes(self, width: int) -> int:
        """Of a sample: what a step needs outside of blocks."""

    @abstractmethod
    def exchanges(self, tensor: int, *, again: bool) -> int:
        """How often the tokens between matrices are gathered or scattered in a step; summing them is both."""

    @abstractmethod
    def shared_gradients(self, tensor: int) -> int:
        """Numbers of weights that every rank of a tensor group has, each with a part of the gradient."""

    @property
    @abstractmethod
    def loss_terms(self) -> int:
        """Of a sample: numbers that a tensor group exchanges for the loss, twice each."""

    @property
    def query_width(self) -> int:
        return self.head_width * self.heads

    @property
    def root(self) -> tuple[Parameters, ...]:
        """All that is in no block."""
        return (*self.embedding, *self.head)

    @property
    def block_params(self) -> int:
        return elements(self.block, shards=1)

    @property
    def matrix_elements(self) -> int:
        """Of one block."""
        return elements(tuple(one for one in self.block if one.columns > 1), shards=1)

    @property
    def head_params(self) -> int:
        return elements(self.head, shards=1)

    @property
    def params(self) -> int:
        return self.largest_shard(1)

    def largest_shard(self, shards: int) -> int:
        """Elements on the rank that has most: of each parameter the rows are dealt out, rounded up.

        Source: PyTorch documentation, torch.distributed.fsdp.fully_shard: sharded like torch.chunk on
        dimension 0, and padded to even sizes.
        """
        return self.layers * elements(self.block, shards) + elements(self.root, shards)


def elements(parameters: tuple[Parameters, ...], shards: int) -> int:
    return sum(one.number * -(-one.rows // shards) * one.columns for one in parameters)
