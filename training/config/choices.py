"""The words an option may take. No torch here: options are read before it is loaded."""

from enum import StrEnum

SYNTHETIC = "synthetic"
"""Of ``data``: made, not read."""


class Precision(StrEnum):
    AUTO = "auto"
    """As the checkpoint has it; for a new job bf16 where all its devices compute that fast, else fp32."""
    FP32 = "fp32"
    BF16 = "bf16"
    """Computes in bf16; weights, gradients and optimizer are fp32."""
    BF16_PURE = "bf16_pure"
    """Everything is bf16; Kahan's sum keeps what small updates would lose (AnyPrecisionAdamW)."""
    FLOAT8 = "float8"
    """As bf16, but matrices of the blocks are multiplied in float8, each scaled as a whole."""
    FLOAT8_ROWWISE = "float8_rowwise"
    """Likewise, scaled row by row."""
    FLOAT8_EMULATED = "float8_emulated"
    """The numbers of float8, multiplied by what any device has: no faster, to see what they do to a loss."""
    FLOAT8_ROWWISE_EMULATED = "float8_rowwise_emulated"

    @classmethod
    def _missing_(cls, value: object) -> "Precision | None":
        """Dashes and underscores are the same, as in the names of options."""
        return next((one for one in cls if one.value == str(value).replace("-", "_")), None)

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
    """What a vision transformer learns."""

    CLASSIFY = "classify"
    MASKED = "masked"
    """The pixels of patches that are hidden from it (SimMIM)."""


class Augment(StrEnum):
    """What is changed of an image at random, each time that it is trained on."""

    NONE = "none"
    CROP = "crop"
    """A part of it, and half of them mirrored."""


class OptimizerName(StrEnum):
    ADAMW = "adamw"
    ADAMW_8BIT = "adamw_8bit"
    """The moments of matrices take a byte each instead of four."""
    MUON = "muon"
    """Matrices of the blocks are updated by orthogonal matrices, all else by AdamW."""


class ReduceDtype(StrEnum):
    """What gradients are summed in over the ranks, where the weights are computed in bf16."""

    FP32 = "fp32"
    BF16 = "bf16"


class Strategy(StrEnum):
    """FSDP's words for what is divided among which ranks."""

    FULL_SHARD = "full_shard"
    SHARD_GRAD_OP = "shard_grad_op"
    """As full_shard, but the weights stay gathered from forward to backward."""
    HYBRID_SHARD = "hybrid_shard"
    """full_shard within a group of ranks, copies between the groups."""
    HYBRID_SHARD_ZERO2 = "hybrid_shard_zero2"
    NO_SHARD = "no_shard"
    TP = "tp"
    """Tensor parallel alone: all ranks work on the same sequences."""

    @property
    def is_hybrid(self) -> bool:
        """Whether groups of ranks have a copy of the model each, and divide it."""
        return self in {Strategy.HYBRID_SHARD, Strategy.HYBRID_SHARD_ZERO2}


class ActivationCheckpointing(StrEnum):
    """What is computed again in the backward pass instead of being kept."""

    NONE = "none"
    SELECTIVE = "selective"
    """All but the costly operations: matrices and attention are kept."""
    FULL = "full"
    """Each block, from its input."""


class Compile(StrEnum):
    NONE = "none"
    AOT_EAGER = "aot_eager"
    """Traced but not compiled: finds what a compiler would stumble over, needs none."""
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
