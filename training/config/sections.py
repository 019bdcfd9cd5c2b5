"""Options of the training program, in sections: a module receives the one that it reads.

Options are read from the strings that SageMaker passes as hyperparameters, by their plain names.
``TrainConfig`` is all sections at once, so it may be given wherever one is wanted; one section by itself
will do as well. Sections have no slots, as a class cannot have several bases with slots.

Nothing here imports torch: options are read, and may be refused, before it is loaded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from training.config.choices import (
    SYNTHETIC,
    ActivationCheckpointing,
    Augment,
    Compile,
    DebugLevel,
    DeviceName,
    Objective,
    OptimizerName,
    Precision,
    ProfileRanks,
    ReduceDtype,
    Strategy,
)
from training.config.decoder_layout import PROJECTIONS
from training.config.decoder_shape import PRESETS, Lora, ModelShape
from training.config.reader import option
from training.config.vision_shape import VISION_PRESETS, Shape, VisionShape

PRESET_SHAPES: Mapping[str, Shape] = {**PRESETS, **VISION_PRESETS}


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model that is trained, and the weights that it starts from."""

    preset: str = option("tiny", f"model shape: {', '.join(PRESET_SHAPES)}")
    model_config: str = option(
        "", "instead of a preset: a config.json of Hugging Face, its directory or channel:NAME"
    )
    sequence_length: int = option(
        0, "tokens of a sequence; 0: the preset's, or what model_config allows up to 4096", at_least=0
    )
    init_from: str = option("", "directory or channel:NAME with safetensors weights to start from")
    lora_rank: int = option(0, "train adapters of this rank instead of the model; 0: the model", at_least=0)
    lora_alpha: float = option(0.0, "adapters count alpha / rank times; 0: twice", at_least=0)
    lora_targets: str = option("all", f"matrices with adapters: all, or some of {','.join(PROJECTIONS)}")
    lora_merge: bool = option(True, "leave the merged weights, too, beside the adapters")
    new_head: bool = option(False, "images: the head of init_from is left out, e.g. for other classes")
    objective: Objective = option(Objective.CLASSIFY, "classify images, or predict masked patches of them")
    image_size: int = option(0, "pixels of an image's side; 0: the model's", at_least=0)
    classes: int = option(0, "of the images; 0: the model's", at_least=0)
    mask_share: float = option(0.6, "masked: the share of patches that are hidden and predicted", at_least=0)

    described: Shape | None = field(default=None)
    """Shape that ``model_config`` describes; None: the preset counts."""

    @property
    def model_name(self) -> str:
        """Name of the model, the same whatever length it is trained with."""
        return f"{self.described.family} {self.described.fingerprint}" if self.described else self.preset

    @property
    def shape(self) -> Shape:
        shape = self.described or PRESET_SHAPES[self.preset]
        if isinstance(shape, VisionShape):
            return self._with_image_options(shape)
        return replace(shape, sequence_length=self.sequence_length) if self.sequence_length else shape

    @property
    def has_images(self) -> bool:
        """Whether the model is trained on images, not on texts."""
        return isinstance(self.shape, VisionShape)

    @property
    def text_shape(self) -> ModelShape:
        """Shape of a decoder; callers know that the model is one."""
        shape = self.shape
        assert isinstance(shape, ModelShape)
        return shape

    @property
    def image_shape(self) -> VisionShape:
        shape = self.shape
        assert isinstance(shape, VisionShape)
        return shape

    def _with_image_options(self, shape: VisionShape) -> VisionShape:
        return replace(
            shape,
            image_size=self.image_size or shape.image_size,
            classes=self.classes or shape.classes,
            masked=self.mask_share if self.objective is Objective.MASKED else 0.0,
        )

    @property
    def lora(self) -> Lora | None:
        if not self.lora_rank:
            return None
        named = self.lora_targets.split(",")
        targets = tuple(target for target in PROJECTIONS if target in named or "all" in named)
        return Lora(rank=self.lora_rank, alpha=self.lora_alpha or 2.0 * self.lora_rank, targets=targets)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The run as a whole: its length, its randomness, and what its hosts wait for."""

    steps: int = option(60, "steps of the whole job, over all attempts", at_least=1)
    seed: int = option(0, "weights and the order of the data follow from it", at_least=0)
    stop_seconds: float = option(110.0, "from SIGTERM to the exit; SageMaker kills after 120", at_least=1)
    join_seconds: float = option(600.0, "how long hosts wait for each other at the start", at_least=1)
    min_step_seconds: float = option(0.0, "pace a demonstration: no step is shorter", at_least=0)
    min_sample_seconds: float = option(
        0.0, "pace a demonstration: no rank takes less for each sample of its share", at_least=0
    )
    hold_file: str = option(
        "", "hold a demonstration: no step after the number in this file begins before it says more"
    )


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Training data and evaluation data, and how steps are cut from them."""

    data: str = option(
        SYNTHETIC, "synthetic, channel:NAME, a directory or s3://BUCKET/PREFIX of token or image shards"
    )
    document_mask: bool = option(False, "attention stays inside documents, and positions start at 0 in each")
    batch_size: int = option(8, "sequences per step, over all ranks", at_least=1)
    gradient_accumulation_steps: int = option(
        1, "parts that a rank's share of a step is cut into", at_least=1
    )
    prefetch_batches: int = option(2, "batches read ahead of use; 0: none", at_least=0)
    augment: Augment = option(Augment.CROP, "images of training: none, or crop (random part, half mirrored)")
    decode_threads: int = option(2, "images decoded at a time, on each rank", at_least=1)
    eval_every: int = option(
        0, "steps between evaluations on eval_data, and one at the end; 0: none", at_least=0
    )
    eval_data: str = option("", "as data, of the validation share; for synthetic data: other sequences of it")
    eval_batches: int = option(
        32, "batches of batch_size that an evaluation takes; 0: all of eval_data", at_least=0
    )


@dataclass(frozen=True, kw_only=True)
class OptimizerOptions:
    """The loss that is minimised, and the updates of the weights."""

    optimizer: OptimizerName = option(
        OptimizerName.ADAMW,
        "adamw; adamw_8bit: less memory for its moments; muon: for matrices of the blocks",
    )
    lr: float = option(3e-3, "peak learning rate", at_least=0)
    warmup_steps: int = option(10, "steps up to the peak", at_least=0)
    weight_decay: float = option(0.1, "of matrices; norms have none", at_least=0)
    grad_clip: float = option(1.0, "largest norm of all gradients", at_least=1e-3)
    label_smoothing: float = option(0.0, "share of the target that all classes get alike", at_least=0)
    loss_chunk: int = option(
        0, "tokens whose logits are made at a time, e.g. 8192; 0: those of a part at once", at_least=0
    )
    z_loss: float = option(0.0, "weight of the squared log of the softmax's sum, e.g. 1e-4", at_least=0)


@dataclass(frozen=True, kw_only=True)
class ParallelOptions:
    """Precision, memory, and the division of the model among ranks."""

    device: DeviceName = option(
        DeviceName.AUTO, "what is trained on: auto (a GPU where there is one), cpu, cuda, neuron (Trainium)"
    )
    precision: Precision = option(
        Precision.AUTO,
        "auto: bf16 where the device computes it fast, else fp32; bf16_pure: weights and optimizer too; "
        "float8, float8_rowwise: matrices of blocks, also with _emulated",
    )
    float8_all_gather: bool = option(
        True, "with float8 by tensor: gather weights in float8, half the bytes of bf16"
    )
    reduce_dtype: ReduceDtype = option(ReduceDtype.FP32, "what bf16 gradients are summed in over the ranks")
    strategy: Strategy = option(
        Strategy.FULL_SHARD, "what is divided among which ranks: " + ", ".join(Strategy)
    )
    shard_group_size: int = option(0, "ranks of a hybrid_shard group; 0: those of a host", at_least=0)
    tensor_parallel: int = option(
        1, "neighbouring ranks that divide each matrix and work on the same sequences", at_least=1
    )
    activation_checkpointing: ActivationCheckpointing = option(
        ActivationCheckpointing.NONE, "what is computed again instead of kept: none, selective, full"
    )
    compile: Compile = option(Compile.NONE, "torch.compile of each block: none, aot_eager, inductor")
    min_unit_params: int = option(
        0, "blocks gathered together until they have so many parameters; 0: each by itself", at_least=0
    )
    prefetch_blocks: int = option(1, "blocks gathered ahead of use; 0: FSDP's own choice", at_least=0)
    cpu_offload: bool = option(False, "keep weights and optimizer in the host's memory")


@dataclass(frozen=True, kw_only=True)
class CheckpointOptions:
    """Checkpoints, and the result at the end."""

    checkpoint_dir: str = option(
        "/opt/ml/checkpoints", "directory or s3://BUCKET/PREFIX", env="SM_CHECKPOINT_DIR"
    )
    checkpoint_every: int = option(
        0, "steps between checkpoints; 0: by time, so that saving costs at most 5 %", at_least=0
    )
    checkpoint_async: bool = option(True, "train on while a checkpoint is written")
    checkpoint_keep: int = option(2, "newest checkpoints that are kept", at_least=1)
    checkpoint_keep_every: int = option(
        0, "also keep a checkpoint every this many steps for good; 0: none", at_least=0
    )
    cache_dir: str = option(
        "",
        "survives on a warm pool: compiled code, newest checkpoint",
        env="SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY",
    )
    model_dir: Path = option(Path("/opt/ml/model"), "where the result goes", env="SM_MODEL_DIR")
    export: bool = option(True, "leave the whole weights as safetensors in model_dir")


@dataclass(frozen=True, kw_only=True)
class MonitoringOptions(RunOptions):
    """Metrics, traces and checks of the run."""

    log_every: int = option(1, "steps between metric lines", at_least=1)
    metrics_file: str = option("", "also write the metric lines here, unrounded, as JSON lines")
    samples_file: str = option(
        "", "write the numbers of each step's samples here, a JSON line for each rank that has some"
    )
    debug: DebugLevel = option(DebugLevel.OFF, "what torch.distributed tells: off, info, detail")
    profile_step: int = option(0, "write a trace of this step to the output; 0: none", at_least=0)
    profile_steps: int = option(1, "steps of a trace, from profile_step or SIGUSR2 on", at_least=1)
    profile_ranks: ProfileRanks = option(ProfileRanks.FIRST, "which ranks write a trace: first, all")
    profile_memory: bool = option(
        False, "with a trace: allocations, and on GPUs a snapshot of the allocator's history"
    )
    find_nonfinite: bool = option(
        False, "name the module, rank and samples of the first value that is not finite; slow"
    )
    hang_seconds: float = option(
        0.0,
        "without progress in a step until the launcher ends the job; 0: 20 usual steps, at least 480",
        at_least=0,
    )


@dataclass(frozen=True, kw_only=True)
class SampleOptions(DataOptions, RunOptions, ModelOptions):
    """Samples that a model is trained on: sequences or images."""

    @property
    def targets_per_step(self) -> int:
        """Number of predictions of a step, over all ranks, before any is left out: the loss is their mean."""
        return self.batch_size * self.shape.targets

    def shortest_step(self, shares: int) -> float:
        """Return the seconds that a demonstration's pace makes a step take that so many ranks share."""
        return max(self.min_step_seconds, self.min_sample_seconds * self.batch_size / shares)

    @property
    def tokens_per_step(self) -> int:
        """Number of tokens of a step, over all ranks."""
        return self.batch_size * self.shape.sequence_length


@dataclass(frozen=True, kw_only=True)
class DivisionOptions(ParallelOptions, ModelOptions):
    """A model and its division among ranks."""


@dataclass(frozen=True, kw_only=True)
class BatchOptions(DivisionOptions, SampleOptions):
    """A batch of samples, and the ranks that share it with the model."""


@dataclass(frozen=True, kw_only=True)
class StepOptions(ParallelOptions, OptimizerOptions):
    """The arithmetic of a step: loss and update, and the precision and memory that they take."""
