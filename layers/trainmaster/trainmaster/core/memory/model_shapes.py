"""Decoders that the training program trains, as far as their memory and traffic depend on the shape."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import ClassVar

from trainmaster.core.memory import program_shapes
from trainmaster.core.memory.transformer_shapes import Parameters, TransformerShape


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape(program_shapes.ModelShape, TransformerShape):
    """A decoder-only transformer of the Llama family."""

    samples: ClassVar = "sequences"

    @classmethod
    def of(cls, shape: object) -> "ModelShape":
        """Copy the fields of a shape of the training program, or of the generated copy of its class."""
        return cls(**{field.name: getattr(shape, field.name) for field in fields(cls)})

    @property
    def kv_width(self) -> int:
        return self.head_width * self.kv_heads

    @property
    def block(self) -> tuple[Parameters, ...]:
        """Query, key, value and output; gate, up and output of the feed-forward layer; norms and biases."""
        return (
            Parameters(1, self.query_width, self.width),
            Parameters(1, self.width, self.query_width),
            Parameters(2, self.kv_width, self.width),
            Parameters(2, self.hidden, self.width),
            Parameters(1, self.width, self.hidden),
            Parameters(2, self.width, 1),
            *self._vectors,
        )

    @property
    def _vectors(self) -> tuple[Parameters, ...]:
        qkv, output, feed_forward = self.qkv_bias, self.output_bias, self.feed_forward_bias
        return (
            Parameters(qkv, self.query_width, 1),
            Parameters(2 * qkv, self.kv_width, 1),
            Parameters(2 * feed_forward, self.hidden, 1),
            Parameters(output + feed_forward, self.width, 1),
            Parameters(2 * self.head_norms, self.head_width, 1),
        )

    def adapters(self, targets: tuple[str, ...], rank: int) -> tuple[Parameters, ...]:
        """List one block's adapters: two matrices beside each target, of its inputs and of its outputs."""
        pairs = (self.matrices[name] for name in targets)
        return tuple(
            adapter
            for outs, ins in pairs
            for adapter in (Parameters(1, rank, ins), Parameters(1, outs, rank))
        )

    @property
    def embedding(self) -> tuple[Parameters, ...]:
        """List the embedding's parameters, which FSDP shards as a unit; none if the head is the embedding."""
        return () if self.tied_head else (Parameters(1, self.vocabulary, self.width),)

    @property
    def head(self) -> tuple[Parameters, ...]:
        """List the head and the last norm, which stay gathered: the backward pass begins with them."""
        return (Parameters(1, self.vocabulary, self.width), Parameters(1, self.width, 1))

    def on_tensor_rank(self, ranks: int) -> "ModelShape":
        """Return the part of the model on one rank of ``ranks`` that divide each matrix.

        Norms and shared heads stay whole.
        """
        return replace(
            self,
            heads=self.heads // ranks,
            kv_heads=self.kv_heads // ranks if self.kv_heads >= ranks else self.kv_heads,
            hidden=self.hidden // ranks,
            vocabulary=self.vocabulary // ranks,
        )

    @property
    def matrix_elements_outside(self) -> int:
        return self.sequence_length * self.width * self.vocabulary

    def indivisible(self, ranks: int) -> Mapping[str, int]:
        sizes = {
            "heads": self.heads,
            "hidden": self.hidden,
            "vocabulary": self.vocabulary,
            "sequence_length": self.sequence_length,
        }
        indivisible = {name: size for name, size in sizes.items() if size % ranks}
        if self.kv_heads % ranks and ranks % self.kv_heads:
            indivisible["kv_heads"] = self.kv_heads
        return indivisible

    def token_ranks(self, tensor: int) -> int:
        return tensor

    def whole_block(self, width: int, tensor: int) -> int:
        """Return a block's bytes of a token: inputs of matrices, attention and gate.

        A norm keeps two vectors and an fp32.

        Fused kernels of a GPU may keep less. Attention keeps a sum per head.
        """
        inputs = 2 * self.width + 3 * self.query_width + 2 * self.kv_width + 4 * self.hidden
        norms = 2 * (2 * self.width + 1) // tensor + self.head_norms * self._head_norms
        return inputs * width + (norms + self.heads) * 4

    @property
    def _head_norms(self) -> int:
        """Count the fp32 numbers of head norms: two vectors of queries and keys, and one per head."""
        return 2 * (self.query_width + self.kv_width) + self.heads + self.kv_heads

    def costly_part(self, width: int) -> int:
        """Return the bytes of a block's input, its seven matrices' outputs, attention and sum per head."""
        matrices = 2 * self.width + self.query_width + 2 * self.kv_width + 2 * self.hidden
        return (self.width + self.query_width + matrices) * width + self.heads * 4

    def outside_bytes(self, width: int) -> int:
        """Return the bytes of the logits as computed, in fp32, and of their logarithms or gradients."""
        return self.sequence_length * self.vocabulary * (width + 8)

    def exchanges(self, _tensor: int, *, again: bool) -> int:
        """Count gathers and scatters of tokens in a step.

        Tokens are gathered before attention, feed-forward layer and head, and scattered after embedding and
        both.

        The backward pass does the same the other way. A block that is computed again gathers twice more and
        scatters once: the checkpoint stops before what nobody needs.
        """
        return 2 * (4 * self.layers + 2) + (3 * self.layers if again else 0)

    def shared_gradients(self, tensor: int) -> int:
        """Count the weights of norms, and of key and value heads that several ranks share."""
        in_block = 2 * self.width + 2 * self.head_norms * self.head_width
        if self.kv_heads < tensor:
            in_block += 2 * self.kv_width * (self.width + self.qkv_bias)
        return self.layers * in_block + self.width

    @property
    def loss_terms(self) -> int:
        return self.sequence_length


PRESETS: Mapping[str, ModelShape] = MappingProxyType(
    {name: ModelShape.of(shape) for name, shape in program_shapes.PRESETS.items()}
)
"""Decoders by the ``preset`` of the training program."""
