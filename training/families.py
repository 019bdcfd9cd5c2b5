"""The two families that the loop trains, decoders and vision transformers: what differs, in one place.

The module also lists what another attempt may not change, or it would silently continue another training:
this is kept with each checkpoint, which refuses an attempt that differs. The weight decay comes back with the
optimizer's state, so a new value would be ignored. Steps, batch size, learning rate and the number of ranks
may change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from training.config import TrainConfig
from training.config.choices import Augment, OptimizerName, Precision
from training.config.sections import ModelOptions, SampleOptions
from training.config.vision_shape import Shape, VisionShape
from training.data.batches import Batches, BatchSource
from training.data.corpus import Corpus, open_corpus, open_validation
from training.data.validation import FirstSamples, ValidationBatches, ValidationSource
from training.interop.importing import hashed_weights, load_weights
from training.models.loss import NextToken, Objective, cross_entropy, token_terms
from training.models.transformer import Backbone, Transformer
from training.ranks.world import World
from training.vision.image_batches import ImageBatches, ImageReader, ImageValidation
from training.vision.images import Images, open_images, open_validation_images
from training.vision.vit import Classifying, Unmasking, VisionTransformer


class Source(BatchSource, Protocol):
    def numbers(self, step: int) -> list[int]:
        """Return the numbers of the sequences or images that this rank sees in a step."""


def model_of(shape: Shape) -> Backbone:
    """Make the model on the default device; its weights have no first values yet."""
    return VisionTransformer(shape) if isinstance(shape, VisionShape) else Transformer(shape)


def objective_of(config: TrainConfig) -> Objective:
    """Choose the objective that is trained."""
    if config.has_images:
        return _of_images(config, smoothing=config.label_smoothing)
    return NextToken(terms_of=token_terms(config), chunk=config.loss_chunk)


def evaluated_by(config: TrainConfig) -> Objective:
    """Choose the objective of evaluations: the loss alone, without what training adds to it."""
    if config.has_images:
        return _of_images(config, smoothing=0.0)
    return NextToken(terms_of=cross_entropy, chunk=config.loss_chunk)


def _of_images(config: TrainConfig, *, smoothing: float) -> Objective:
    shape = config.image_shape
    return Unmasking(shape=shape) if shape.masked else Classifying(smoothing=smoothing)


def open_data(config: SampleOptions, env: Mapping[str, str]) -> "TextData | ImageData":
    """Open what ``data`` and ``eval_data`` name.

    Raises:
        ConfigError: An option names what this job does not have.
        DataError: Something is missing, cut short, out of reach or does not fit the model.
    """
    if config.has_images:
        return ImageData(config, open_images(config, env), open_validation_images(config, env))
    return TextData(config, open_corpus(config, env=env), open_validation(config, env=env))


@dataclass(frozen=True, slots=True)
class TextData:
    """The texts that a job trains on and is evaluated with."""

    config: SampleOptions
    corpus: Corpus
    held_out: Corpus | None

    @property
    def identity(self) -> str:
        """Return a text that is the same wherever the data lies, and another for other data."""
        return self.corpus.identity

    @property
    def is_masked(self) -> bool:
        """Tell whether some targets are not trained, so that those of a step are counted over the ranks."""
        return self.corpus.is_masked or self.config.document_mask

    def batches(self, world: World) -> Source:
        return Batches(
            corpus=self.corpus,
            sequence_length=self.config.shape.sequence_length,
            size=self.config.batch_size,
            rank=world.data_rank,
            ranks=world.data_ranks,
            seed=self.config.seed,
            by_document=self.config.document_mask,
        )

    def validation(self, world: World) -> ValidationSource | None:
        """Return the batches of evaluations, or None if nothing is evaluated."""
        if self.held_out is None:
            return None
        return ValidationBatches(
            corpus=self.held_out,
            samples=FirstSamples.of(self.config, world, self.held_out.sequences),
            sequence_length=self.config.shape.sequence_length,
            by_document=self.config.document_mask,
        )


@dataclass(frozen=True, slots=True)
class ImageData:
    """The images that a job trains on and is evaluated with."""

    config: SampleOptions
    images: Images
    held_out: Images | None
    is_masked = False

    @property
    def identity(self) -> str:
        return self.images.identity

    def batches(self, world: World) -> Source:
        reader = ImageReader.of(self.config, self.images, augment=self.config.augment)
        return ImageBatches(
            reader=reader, size=self.config.batch_size, rank=world.data_rank, ranks=world.data_ranks
        )

    def validation(self, world: World) -> ValidationSource | None:
        if self.held_out is None:
            return None
        return ImageValidation(
            reader=ImageReader.of(self.config, self.held_out, augment=Augment.NONE),
            samples=FirstSamples.of(self.config, world, self.held_out.count),
        )


def guard_of(config: TrainConfig, data: str) -> dict[str, str]:
    """Return the options that another attempt may not change; ``data`` is the identity of the data."""
    fixed = {
        "preset": config.model_name,
        "sequence_length": str(config.shape.sequence_length),
        "seed": str(config.seed),
        "weight_decay": str(config.weight_decay),
        "data": data,
        "weights": "bf16" if config.precision is Precision.BF16_PURE else "fp32",
    }
    # Only where they are not what they always were: a checkpoint of before does not name them.
    if config.optimizer is not OptimizerName.ADAMW:
        fixed["optimizer"] = config.optimizer
    return fixed | _fixed_options(config)


def _fixed_options(config: TrainConfig) -> dict[str, str]:
    """Return the family's options that another attempt may not change.

    Those that are as usual are not named.
    """
    if not config.has_images:
        return {"document_mask": "true"} if config.document_mask else {}
    shape = config.image_shape
    return {
        "objective": f"{config.objective} {shape.masked}" if shape.masked else config.objective.value,
        "image_size": str(shape.image_size),
        "classes": str(shape.classes),
        "augment": config.augment.value,
        "label_smoothing": str(config.label_smoothing),
    }


def guard_of_base(config: ModelOptions, env: Mapping[str, str], model: Backbone) -> dict[str, str]:
    """Load the weights beside which adapters are trained, as no checkpoint holds them.

    Returns what of them may not change in another attempt; empty if no adapters are trained.
    """
    if config.lora is None:
        return {}
    load_weights(model, config.init_from, env)
    return {"lora": str(config.lora), "base": hashed_weights(config.init_from, env)}
