"""Vision transformers of the training program, as far as memory and traffic depend on the shape."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from trainmaster.core.memory import program_shapes
from trainmaster.core.memory.model_shapes import PRESETS, ModelShape
from trainmaster.core.memory.program_shapes import CHANNELS, Pooling
from trainmaster.core.memory.transformer_shapes import Parameters, TransformerShape


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionShape(program_shapes.VisionShape, TransformerShape):
    """An encoder with patches as tokens, LayerNorm and GELU."""

    head_width: int = 0
    """Width of one head; 0: width / heads."""
    embedded_width: int = 0
    """Columns of the embedding on a rank; 0: all."""

    samples: ClassVar = "images"

    @classmethod
    def of(cls, shape: object) -> "VisionShape":
        """Copy the fields of a shape of the training program, or of the generated copy of its class."""
        values = {field.name: getattr(shape, field.name) for field in fields(program_shapes.VisionShape)}
        return cls(**values | {"pooling": Pooling(values["pooling"]), "masked": float(values["masked"] > 0)})

    def __post_init__(self) -> None:
        if not self.head_width:
            object.__setattr__(self, "head_width", self.width // self.heads)
        if not self.embedded_width:
            object.__setattr__(self, "embedded_width", self.width)

    @property
    def is_masked(self) -> bool:
        """Tell whether hidden patches are predicted, not classes; how many are hidden takes no memory."""
        return self.masked > 0

    @property
    def _predictions(self) -> int:
        """Count the tokens of an image that the head sees."""
        return self.patches if self.is_masked else 1

    @property
    def block(self) -> tuple[Parameters, ...]:
        """Query, key, value and output; up and output of the feed-forward layer; norms and biases."""
        norms = (1 if self.is_parallel else 2) * (1 + self.norm_bias)
        return (
            Parameters(3, self.query_width, self.width),
            Parameters(1, self.width, self.query_width),
            Parameters(1, self.hidden, self.width),
            Parameters(1, self.width, self.hidden),
            Parameters(norms, self.width, 1),
            Parameters(2 * self.head_norms * (1 + self.norm_bias), self.head_width, 1),
            Parameters(3 * self.qkv_bias, self.query_width, 1),
            Parameters(2, self.width, 1),
            Parameters(1, self.hidden, 1),
        )

    @property
    def embedding(self) -> tuple[Parameters, ...]:
        """List the convolution, then vectors beside or in place of tokens, which FSDP leaves to one rank."""
        tokens = (self.pooling is Pooling.CLASS) + self.is_masked
        return (
            Parameters(1, self.embedded_width, self.patch_values, is_flat=False),
            Parameters(1, self.embedded_width, 1),
            Parameters(1, 1, self.sequence_length * self.embedded_width, is_flat=False),
            Parameters(tokens, 1, self.embedded_width, is_flat=False),
        )

    @property
    def head(self) -> tuple[Parameters, ...]:
        """List the head and the last norm."""
        return (
            Parameters(1, self.outputs, self.width),
            Parameters(1, self.outputs, 1),
            Parameters(1 + self.norm_bias, self.width, 1),
        )

    def adapters(self, _targets: tuple[str, ...], _rank: int) -> tuple[Parameters, ...]:
        """Return none: the program has no adapters for images."""
        return ()

    @property
    def matrix_elements_outside(self) -> int:
        """Count the multiplications of an image outside of blocks."""
        return self.width * (self.patch_values * self.patches + self.outputs * self._predictions)

    def on_tensor_rank(self, ranks: int) -> "VisionShape":
        """Return the part of the model on one rank of ``ranks`` that divide each matrix.

        Norms and the head stay whole.
        """
        return replace(
            self,
            heads=self.heads // ranks,
            hidden=self.hidden // ranks,
            embedded_width=self.width // ranks,
        )

    def indivisible(self, ranks: int) -> Mapping[str, int]:
        """Return the dimensions, by name, that do not divide; tokens need not be divided."""
        sizes = {"heads": self.heads, "hidden": self.hidden}
        return {name: size for name, size in sizes.items() if size % ranks}

    def token_ranks(self, tensor: int) -> int:
        """Return the number of ranks that divide the tokens.

        If they do not divide, each rank has all of them.
        """
        return 1 if self.sequence_length % tensor else tensor

    def whole_block(self, width: int, tensor: int) -> int:
        """Return a block's bytes of a token: inputs of norms and matrices, and attention.

        A norm keeps two numbers.

        Attention keeps a sum per head, and a second copy where queries and keys are normed.
        """
        among, norms = self.token_ranks(tensor), 1 if self.is_parallel else 2
        gathered = 2 if among > 1 else norms  # parallel layers gather their input each by itself
        inputs = norms * self.width // among + gathered * self.width + 4 * self.query_width + 2 * self.hidden
        head_norms = self.head_norms * (3 * self.query_width * width + 4 * self.heads * 4)
        return inputs * width + head_norms + (2 * norms + self.heads) * 4

    def costly_part(self, width: int) -> int:
        """Return the bytes of a block's input, its six matrices' outputs, attention and sum per head."""
        matrices = 2 * self.width + 3 * self.query_width + self.hidden
        return (self.width + self.query_width + matrices) * width + self.heads * 4

    def outside_bytes(self, width: int) -> int:
        """Return the bytes of an image's pixels, raw and as computed with, and of the head's outputs.

        The outputs are kept in the computation's type and in fp32.

        A masked objective also keeps what its head sees, the pixels that it aims at and how far it is off.
        """
        pixels = CHANNELS * self.image_size**2 * (1 + width)
        outputs = self._predictions * self.outputs
        if self.is_masked:
            return pixels + outputs * (width + 16) + 2 * self.patches * self.width * width
        return pixels + outputs * (width + 8)

    def exchanges(self, tensor: int, *, again: bool) -> int:
        """Count how often tokens between matrices are gathered or scattered in a step; summing them is both.

        Each block gathers twice and scatters twice in each pass, or sums twice; one that is computed again
        gathers twice more and scatters once, or sums once. The embedding gathers its columns; where tokens
        are divided it does so in the backward pass, too, and the head gathers its input.
        """
        is_divided = self.token_ranks(tensor) > 1
        repeated = (3 if is_divided else 2) * self.layers if again else 0
        return 8 * self.layers + repeated + (3 if is_divided else 1)

    def shared_gradients(self, tensor: int) -> int:
        """Count the weights of head norms, and of norms of tokens that are divided."""
        in_block = 2 * self.head_norms * (1 + self.norm_bias) * self.head_width
        if self.token_ranks(tensor) > 1:
            norms = (1 if self.is_parallel else 2) * (1 + self.norm_bias)
            in_block += norms * self.width
        return self.layers * in_block

    @property
    def loss_terms(self) -> int:
        """Return 0: each rank has the whole head."""
        return 0


Shape: TypeAlias = ModelShape | VisionShape


VISION_PRESETS: Mapping[str, VisionShape] = MappingProxyType(
    {name: VisionShape.of(shape) for name, shape in program_shapes.VISION_PRESETS.items()}
)
"""Models of images by the ``preset`` of the training program."""
EVERY_PRESET: Mapping[str, Shape] = MappingProxyType({**PRESETS, **VISION_PRESETS})
