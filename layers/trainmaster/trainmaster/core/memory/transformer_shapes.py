"""Figures of a model of any family that the arithmetic of memory and traffic needs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple


class Parameters(NamedTuple):
    """Some parameters of one shape; a vector has one column. FSDP divides the rows."""

    number: int
    rows: int
    columns: int
    is_flat: bool = True
    """True for at most two dimensions; if more, adamw_8bit treats the moments like a vector's."""


class TransformerShape(ABC):
    """A model of any family, by the figures that the arithmetic needs."""

    __slots__ = ()

    samples: ClassVar[str]
    """Plural of the thing that a batch consists of, for messages."""
    layers: int
    width: int
    heads: int
    head_width: int

    @property
    @abstractmethod
    def sequence_length(self) -> int:
        """Return the tokens of a sample."""

    @property
    @abstractmethod
    def block(self) -> tuple[Parameters, ...]: ...

    @property
    @abstractmethod
    def embedding(self) -> tuple[Parameters, ...]:
        """List the embedding's parameters, which FSDP shards as a unit."""

    @property
    @abstractmethod
    def head(self) -> tuple[Parameters, ...]:
        """List the head and the last norm; they stay gathered, as the backward pass begins with them."""

    @abstractmethod
    def adapters(self, targets: tuple[str, ...], rank: int) -> tuple[Parameters, ...]:
        """List one block's adapters: two matrices beside each target, of its inputs and of its outputs."""

    @property
    @abstractmethod
    def matrix_elements_outside(self) -> int:
        """Count the multiplications of a sample in matrices outside of blocks."""

    @abstractmethod
    def indivisible(self, ranks: int) -> Mapping[str, int]:
        """Return the dimensions, by name, that cannot be divided among so many ranks of a tensor group."""

    @abstractmethod
    def token_ranks(self, tensor: int) -> int:
        """Return the number of ranks among which tokens are divided between matrices."""

    @abstractmethod
    def whole_block(self, width: int, tensor: int) -> int:
        """Return the bytes of a token that one block keeps; ``width`` is the bytes of a computed number.

        With ``tensor`` ranks that divide matrices, inputs of matrices are kept gathered; norms and inputs of
        blocks are kept for a part of the tokens.
        """

    @abstractmethod
    def costly_part(self, width: int) -> int:
        """Return the bytes of a token that one block keeps of its costly operations alone."""

    @abstractmethod
    def outside_bytes(self, width: int) -> int:
        """Return the bytes of a sample that a step needs outside of blocks."""

    @abstractmethod
    def exchanges(self, tensor: int, *, again: bool) -> int:
        """Count how often tokens between matrices are gathered or scattered in a step.

        Summing them is both.
        """

    @abstractmethod
    def shared_gradients(self, tensor: int) -> int:
        """Count the weights that every rank of a tensor group has, each with a part of the gradient."""

    @property
    @abstractmethod
    def loss_terms(self) -> int:
        """Count the numbers of a sample that a tensor group exchanges for the loss, twice each."""

    @property
    def query_width(self) -> int:
        return self.head_width * self.heads

    @property
    def root(self) -> tuple[Parameters, ...]:
        """List the parameters that belong to no block."""
        return (*self.embedding, *self.head)

    @property
    def block_params(self) -> int:
        return elements(self.block, shards=1)

    @property
    def matrix_elements(self) -> int:
        """Count the elements of one block's matrices."""
        return elements(tuple(parameters for parameters in self.block if parameters.columns > 1), shards=1)

    @property
    def head_params(self) -> int:
        return elements(self.head, shards=1)

    @property
    def params(self) -> int:
        return self.largest_shard(1)

    def largest_shard(self, shards: int) -> int:
        """Count the elements on the rank that has most: each parameter's rows are dealt out, rounded up.

        Source: PyTorch documentation, torch.distributed.fsdp.fully_shard: sharded like torch.chunk on
        dimension 0, and padded to even sizes.
        """
        return self.layers * elements(self.block, shards) + elements(self.root, shards)


def elements(parameters: tuple[Parameters, ...], shards: int) -> int:
    return sum(
        parameter.number * -(-parameter.rows // shards) * parameter.columns for parameter in parameters
    )
