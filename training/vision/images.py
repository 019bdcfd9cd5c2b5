"""Images that vision transformers are trained on, by number: made up, or read from tar shards and folders."""

import zlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from training.config.choices import SYNTHETIC
from training.config.environment import directory_of
from training.config.sections import SampleOptions
from training.data import seed_of
from training.data.blocks import DirectoryPlace, Place
from training.data.corpus import place_of
from training.data.index import INDEX as TOKENS_INDEX
from training.errors import ConfigError, DataError
from training.vision.image_index import INDEX, SAMPLE, SUFFIXES, ImageIndex, parse_index
from training.vision.pictures import View, decoded, libraries

_CELLS, _NOISE_CELLS = 4, 16
_PATTERN, _BRIGHTEST = 0.6, 255


class Images(Protocol):
    """Images by number, with their classes. Read by several threads at once."""

    @property
    def classes(self) -> int:
        """Number of classes; each image's class is below it."""

    @property
    def count(self) -> int | None:
        """Number of images; None if they have no end."""

    @property
    def identity(self) -> str:
        """Digest of images and classes, the same wherever they are stored."""

    def image(self, number: int, view: View) -> tuple[Tensor, int]:
        """Return bytes of shape (colours, side, side), and the class.

        Raises:
            DataError: The image cannot be read, or is not what was written.
        """


def open_images(config: SampleOptions, env: Mapping[str, str]) -> Images:
    """Open the images that ``data`` names, enough for one step at least. Raises like ``opened``."""
    return opened(config.data, config, env, option="data", at_least=config.batch_size)


def open_validation_images(config: SampleOptions, env: Mapping[str, str]) -> Images | None:
    """Open the images that ``eval_data`` names; None if nothing is evaluated. Raises like ``opened``."""
    if not config.eval_every:
        return None
    return opened(config.eval_data or config.data, config, env, option="eval_data", at_least=1)


def opened(data: str, config: SampleOptions, env: Mapping[str, str], *, option: str, at_least: int) -> Images:
    """Open images and check all that can be checked without reading them.

    Args:
        data: Value of the option.
        config: Options of the job.
        env: Environment, which has the directories of the job's channels.
        option: Name of the option, for messages.
        at_least: Number of images that are needed.

    Raises:
        ConfigError: The option names a channel that the job does not have, or a package is missing.
        DataError: Shards are missing, cut short, out of reach or do not fit the model.
    """
    shape = config.image_shape
    if data == SYNTHETIC:
        return SyntheticImages(classes=shape.classes, seed=config.seed)
    missing = [name for name in ("torchvision", "PIL") if find_spec(name) is None]
    if missing:
        needed = " and ".join(missing).replace("PIL", "pillow")
        raise ConfigError([f"{option} {data} needs {needed}: add it to requirements.txt beside train.py"])
    libraries()
    place = place_of(data, env, option=option)
    images = _stored(place, None if "://" in data else directory_of(data, env, option=option))
    if images.classes > shape.classes:
        raise DataError(
            place=place.title,
            problem=f"it has {images.classes} classes, the model {shape.classes} ({config.model_name})",
            remedy=f"set classes {images.classes}",
        )
    if images.count < at_least:
        raise DataError(
            place=place.title,
            problem=f"it has {images.count} images, a step needs batch_size {at_least}",
            remedy="lower batch_size, or give more images",
        )
    return images


def _stored(place: Place, directory: Path | None) -> "TarImages | FolderImages":
    sizes = place.sizes()
    if INDEX in sizes:
        return TarImages(place, parse_index(place.read(INDEX, 0, sizes[INDEX]), place=place.title), sizes)
    if TOKENS_INDEX in sizes:
        problem, remedy = "it holds tokens, the model is of images", "give images, or another preset"
    elif any(name.endswith(".tar") for name in sizes):
        problem = f"its tar files have no {INDEX}"
        remedy = "write it: python -m tools.training.prepare_images --index DIRECTORY"
    elif directory is not None and (folders := FolderImages.of(directory, title=place.title)):
        return folders
    else:
        problem = f"there is neither {INDEX} nor a folder of images for each class"
        remedy = "give the folder that python -m tools.training.prepare_images wrote, or a folder of classes"
    raise DataError(place=place.title, problem=problem, remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticImages:
    """Made-up images: a pattern of coarse cells for each class, and noise. Cheap enough for benchmarks."""

    classes: int
    seed: int
    count: ClassVar = None
    """They have no end."""
    identity: ClassVar = "synthetic"

    def image(self, number: int, view: View) -> tuple[Tensor, int]:
        source = torch.Generator().manual_seed(seed_of(self.seed, "image", number))
        label = int(torch.randint(self.classes, (), generator=source))
        noise = torch.rand(3, _NOISE_CELLS, _NOISE_CELLS, generator=source)
        pattern = _pattern(self.seed, label).repeat_interleave(_NOISE_CELLS // _CELLS, 1)
        pattern = pattern.repeat_interleave(_NOISE_CELLS // _CELLS, 2)
        cells = _BRIGHTEST * (_PATTERN * pattern + (1 - _PATTERN) * noise)
        return F.interpolate(cells.to(torch.uint8).unsqueeze(0), size=view.side)[0], label


@cache
def _pattern(seed: int, label: int) -> Tensor:
    source = torch.Generator().manual_seed(seed_of(seed, "class", label))
    return torch.rand(3, _CELLS, _CELLS, generator=source)


class TarImages:
    """Images in tar shards, found by the index that lies beside them; a read is of one image."""

    def __init__(self, place: Place, index: ImageIndex, sizes: Mapping[str, int]) -> None:
        self._place, self._index = place, index
        _check_files(place, index, sizes)
        self._samples = [_samples(place, shard.samples, shard.crc32) for shard in index.shards]
        self._ends = list(accumulate(shard.images for shard in index.shards))
        self.classes, self.count = len(index.classes), self._ends[-1]
        self.identity = sha256(b"".join(self._samples)).hexdigest()[:16]

    def image(self, number: int, view: View) -> tuple[Tensor, int]:
        shard = bisect_right(self._ends, number)
        place = number - (self._ends[shard - 1] if shard else 0)
        offset, size, label, crc = SAMPLE.unpack_from(self._samples[shard], place * SAMPLE.size)
        name = self._index.shards[shard].name
        content = self._place.read(name, offset, size)
        if zlib.crc32(content) != crc:
            raise DataError(
                place=self._place.title,
                problem=f"{name} has other bytes from {offset} to {offset + size} than when it was indexed",
                remedy="copy the shard again from where it was prepared, or write its index again",
            )
        return decoded(content, view, title=f"{self._place.title}: image {place} of {name}"), label


def _check_files(place: Place, index: ImageIndex, sizes: Mapping[str, int]) -> None:
    wanted = {shard.name: shard.bytes for shard in index.shards}
    wanted |= {shard.samples: shard.images * SAMPLE.size for shard in index.shards}
    wrong = [
        f"{name} has {sizes[name]} bytes of {size}" if name in sizes else f"{name} is missing"
        for name, size in wanted.items()
        if sizes.get(name) != size
    ]
    if wrong:
        raise DataError(
            place=place.title,
            problem=f"{len(wrong)} of {len(wanted)} files are not as {INDEX} says: {', '.join(wrong[:3])}",
            remedy="give the whole folder; a channel needs S3DataDistributionType FullyReplicated",
        )


def _samples(place: Place, name: str, crc: str) -> bytes:
    size = place.sizes()[name]
    content = place.read(name, 0, size)
    if f"{zlib.crc32(content):08x}" != crc:
        raise DataError(
            place=place.title,
            problem=f"{name} is not what {INDEX} says",
            remedy="copy it again, or write the index again",
        )
    return content


class FolderImages:
    """A folder for each class, in the order of their names, with image files in it; for small sets."""

    def __init__(self, classes: int, files: Sequence[tuple[Path, int]], identity: str) -> None:
        self.classes, self.count, self.identity = classes, len(files), identity
        self._files = files

    @classmethod
    def of(cls, directory: Path, *, title: str) -> "FolderImages | None":
        """Open a folder of classes; None if it has no folder with images."""
        files_of = files_by_class(directory, title=title)
        if not files_of:
            return None
        classes = sorted(files_of)
        files = [(path, classes.index(name)) for name in classes for path in files_of[name]]
        lines = (f"{path.relative_to(directory)} {path.stat().st_size}\n" for path, _ in files)
        return cls(len(classes), files, sha256("".join(lines).encode()).hexdigest()[:16])

    def image(self, number: int, view: View) -> tuple[Tensor, int]:
        path, label = self._files[number]
        content = DirectoryPlace(path.parent, title=str(path)).read(path.name, 0, path.stat().st_size)
        return decoded(content, view, title=str(path)), label


def files_by_class(directory: Path, *, title: str) -> dict[str, list[Path]]:
    """Return the image files of each folder, by its name; folders without images are left out."""
    try:
        folders = [entry for entry in directory.iterdir() if entry.is_dir()]
        files_of = {
            folder.name: sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
            for folder in sorted(folders)
        }
    except OSError as error:
        raise DataError(
            place=title,
            problem=f"{error.strerror}: {error.filename}",
            remedy="check that it is there and that the job may read it",
        ) from error
    return {name: files for name, files in files_of.items() if files}
