"""Words that an option may take. Nothing here imports torch: options are read before it is loaded."""

from enum import StrEnum

SYNTHETIC = "synthetic"
"""Value of ``data`` for sequences or images that are made up instead of read."""


class Precision(StrEnum):
    AUTO = "auto"
    """The checkpoint's precision; for a new job bf16 where all its devices compute that fast, else fp32."""
    FP32 = "fp32"
    BF16 = "bf16"
    """Computes in bf16; weights, gradients and optimizer are fp32."""
    BF16_PURE = "bf16_pure"
    """Everything is bf16; Kahan's sum keeps what small updates would lose (AnyPrecisionAdamW)."""
    FLOAT8 = "float8"
    """Like bf16, but matrices of the blocks are multiplied in float8, each scaled as a whole."""
    FLOAT8_ROWWISE = "float8_rowwise"
    """Like float8, but scaled row by row."""
    FLOAT8_EMULATED = "float8_emulated"
    """The numbers of float8, multiplied by what any device has: no faster, to see what they do to a loss."""
    FLOAT8_ROWWISE_EMULATED = "float8_rowwise_emulated"

    @classmethod
    def _missing_(cls, value: object) -> "Precision | None":
        """Treat dashes and underscores alike, as in the names of options."""
        return next((member for member in cls if member.value == str(value).replace("-", "_")), None)

    @property
    def is_float8(self) -> bool:
        return self.value.startswith("float8")

    @property
    def is_emulated(self) -> bool:
        return self.value.endswith("_emulated")

    @property
    def is_rowwise(self) -> bool:
        return "_rowwise" in self.value


class Objective(StrEnum):
    """Goal that a vision transformer is trained for."""

    CLASSIFY = "classify"
    MASKED = "masked"
    """Predict the pixels of patches that are hidden from the model (SimMIM)."""


class Augment(StrEnum):
    """Random changes of an image, drawn each time that it is trained on."""

    NONE = "none"
    CROP = "crop"
    """A random part of the image; half of the parts are mirrored."""


class OptimizerName(StrEnum):
    ADAMW = "adamw"
    ADAMW_8BIT = "adamw_8bit"
    """The moments of matrices take a byte each instead of four."""
    MUON = "muon"
    """Matrices of the blocks are updated by orthogonal matrices, all else by AdamW."""


class ReduceDtype(StrEnum):
    """Type in which gradients are summed over the ranks, where the weights are computed in bf16."""

    FP32 = "fp32"
    BF16 = "bf16"


class Strategy(StrEnum):
    """FSDP's words for the parts of training that are divided, and the ranks that divide them."""

    FULL_SHARD = "full_shard"
    SHARD_GRAD_OP = "shard_grad_op"
    """Like full_shard, but the weights stay gathered from forward to backward."""
    HYBRID_SHARD = "hybrid_shard"
    """Like full_shard within a group of ranks, with copies between the groups."""
    HYBRID_SHARD_ZERO2 = "hybrid_shard_zero2"
    NO_SHARD = "no_shard"
    TP = "tp"
    """Tensor parallel alone: all ranks work on the same sequences."""

    @property
    def is_hybrid(self) -> bool:
        """Tell whether groups of ranks each have a copy of the model and divide it."""
        return self in {Strategy.HYBRID_SHARD, Strategy.HYBRID_SHARD_ZERO2}


class ActivationCheckpointing(StrEnum):
    """Activations that the backward pass computes again instead of keeping them."""

    NONE = "none"
    SELECTIVE = "selective"
    """All but the outputs of costly operations: those of matrices and attention are kept."""
    FULL = "full"
    """Everything inside a block, from the block's input."""


class Compile(StrEnum):
    NONE = "none"
    AOT_EAGER = "aot_eager"
    """Traced but not compiled: it finds what a compiler would stumble over, and needs none."""
    INDUCTOR = "inductor"


class DeviceName(StrEnum):
    AUTO = "auto"
    """A GPU where there is one, else the CPU."""
    CPU = "cpu"
    CUDA = "cuda"
    NEURON = "neuron"
    """A core of Trainium. Not run on hardware."""


class ProfileRanks(StrEnum):
    FIRST = "first"
    ALL = "all"


class DebugLevel(StrEnum):
    OFF = "off"
    INFO = "info"
    DETAIL = "detail"
