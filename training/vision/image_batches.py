"""Images that a step and a rank see, and their random changes: a function of the seed and the step."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from training.config.choices import Augment
from training.config.sections import SampleOptions
from training.config.vision_shape import VisionShape
from training.data import seed_of
from training.data.batches import IGNORED, Batch, Order
from training.data.validation import FirstSamples
from training.vision.images import Images
from training.vision.pictures import Draw, View

_LEAST_AREA_HIDDEN = 0.67
"""Least share of a picture that is cut out if patches are hidden (SimMIM): the rest must hint at them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    number: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReader:
    """Reader that decodes the images of a batch in threads: decoding releases Python's lock."""

    images: Images
    shape: VisionShape
    seed: int
    augment: Augment
    pool: ThreadPoolExecutor

    @classmethod
    def of(cls, config: SampleOptions, images: Images, *, augment: Augment) -> "ImageReader":
        return cls(
            images=images,
            shape=config.image_shape,
            seed=config.seed,
            augment=augment,
            pool=ThreadPoolExecutor(config.decode_threads, thread_name_prefix="decode"),
        )

    def batch(self, samples: Sequence[Sample]) -> Batch:
        """Return images, and their classes (samples, 1) or their hidden patches (samples, patches)."""
        read = list(self.pool.map(self._image, samples))
        images = torch.stack([image for image, _ in read])
        if self.shape.masked:
            return images, torch.stack([self._hidden(sample) for sample in samples])
        return images, torch.tensor([[label] for _, label in read])

    def _image(self, sample: Sample) -> tuple[Tensor, int]:
        is_random = self.augment is not Augment.NONE
        draw = Draw.of(self.seed, sample.number, sample.epoch) if is_random else None
        view = View(side=self.shape.image_size, draw=draw)
        if self.shape.masked:
            view = View(side=view.side, draw=draw, least_area=_LEAST_AREA_HIDDEN)
        return self.images.image(sample.number, view)

    def _hidden(self, sample: Sample) -> Tensor:
        """Draw the hidden patches of an image: squares of several, so that no neighbour gives them away."""
        source = torch.Generator().manual_seed(seed_of(self.seed, "mask", sample.number, sample.epoch))
        units = self.shape.image_size // self.shape.mask_unit
        patches = self.shape.mask_unit // self.shape.patch
        hidden = torch.zeros(units * units, dtype=torch.bool)
        count = self.shape.masked_patches // patches**2
        hidden[torch.randperm(units * units, generator=source)[:count]] = True
        square = hidden.view(units, units)
        return square.repeat_interleave(patches, 0).repeat_interleave(patches, 1).flatten()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageBatches:
    """Batches of images: each step takes the next images of the order, each rank its slice of them."""

    reader: ImageReader
    size: int
    """Images per step, over all ranks."""
    rank: int
    ranks: int

    def at(self, step: int) -> Batch:
        share = self.size // self.ranks
        return self.reader.batch([self._sample(step, self.rank * share + row) for row in range(share)])

    def numbers(self, step: int) -> list[int]:
        """Return the numbers of the images that this rank sees in a step."""
        share = self.size // self.ranks
        return [self._sample(step, self.rank * share + row).number for row in range(share)]

    def _sample(self, step: int, row: int) -> Sample:
        count = self.reader.images.count
        if count is None:
            return Sample(number=step * self.size + row, epoch=0)
        place = (step - 1) * self.size + row
        order = Order(sequences=count, chunk=1, seed=self.reader.seed)
        return Sample(number=order.number(place), epoch=place // count)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageValidation:
    """Batches of images for an evaluation; nothing about them is random."""

    reader: ImageReader
    samples: FirstSamples

    @property
    def count(self) -> int:
        return self.samples.count

    def at(self, number: int) -> Batch:
        numbers = self.samples.numbers(number)
        images, targets = self.reader.batch([Sample(number=image, epoch=0) for image in numbers])
        ignored = False if targets.dtype is torch.bool else IGNORED
        return images, targets.masked_fill(self.samples.come_again(number), ignored)
