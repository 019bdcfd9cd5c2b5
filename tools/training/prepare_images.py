"""Writes pictures as tar shards with an index, or the index of shards that are there.

    python -m tools.training.prepare_images --input pictures --output data [--validation-share 0.05]
    python -m tools.training.prepare_images --index shards

The first takes folders of classes, `pictures/cat/1.jpg`, and mixes them; the second goes through tar files of
KEY.jpg and KEY.cls, as WebDataset writes them, and leaves `images.json` and a small file for each beside
them.
The shards are what `--data` of the training program names. A run that breaks off leaves no index.
"""

import argparse
import io
import os
import sys
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path, PurePosixPath

if not __package__:  # started as a script: what it imports lies two folders up
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tools.training.prepare import as_count, as_share, finished
from tools.training.writer import empty_corpus
from training.config.environment import directory_of
from training.data import seed_of
from training.data.batches import permuted
from training.errors import ConfigError, DataError
from training.vision.image_index import CLASS_SUFFIX, INDEX, SAMPLE, SUFFIXES, ImageIndex, ImageShard
from training.vision.images import files_by_class

_SHARD_BYTES = 2**28
_MOST_CLASSES = 2**24
_DRAFT = ".draft-"
_REMEDY = "each picture KEY.jpg needs KEY.cls beside it, with the number of its class"


def main(arguments: Sequence[str]) -> int:
    """Run the program, and return the exit code."""
    options = _parser().parse_args(arguments)
    remedy = "there is no data set without its index: fix what is wrong, and start again"
    return finished(_prepared(options), options.output or options.index, remedy=remedy)


def _prepared(options: argparse.Namespace) -> Iterator[str]:
    """Write the data sets; yield a line about each."""
    if options.index is not None:
        yield indexed(directory_of(str(options.index), os.environ, option="index"))
        return
    if options.input is None or options.output is None:
        raise ConfigError(["give --input and --output, or --index"])
    directory = directory_of(options.input, os.environ, option="input")
    files_of = files_by_class(directory, title=str(directory))
    if not files_of:
        raise ConfigError([f"--input {options.input} has no folder with pictures in it, one for each class"])
    classes = sorted(files_of)
    files = [(path, classes.index(name)) for name in classes for path in files_of[name]]
    key = seed_of(options.seed, "shards")
    mixed = [files[permuted(place, len(files), key=key)] for place in range(len(files))]
    first = round(len(mixed) * (1 - options.validation_share))
    if options.validation_share and first in {0, len(mixed)}:
        raise ConfigError(
            [f"--validation-share {options.validation_share} of {len(mixed)} pictures leaves one part empty"]
        )
    parts = (
        {"train": mixed[:first], "validation": mixed[first:]} if options.validation_share else {".": mixed}
    )
    for name, part in parts.items():
        place = empty_corpus(options.output / name)
        _write_shards(place, part, shard_bytes=options.shard_bytes)
        yield indexed(place, classes=classes)


def _write_shards(place: Path, files: Iterable[tuple[Path, int]], *, shard_bytes: int) -> None:
    """Write shards, each as large as asked for, or by one picture larger."""
    left = iter(enumerate(files))
    for number in count():
        taken = next(left, None)
        if taken is None:
            return
        path = place / f"shard-{number:05d}.tar"
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as shard:
            while taken is not None:
                order, (picture, label) = taken
                _add(shard, f"{order:09d}{picture.suffix.lower()}", picture.read_bytes())
                _add(shard, f"{order:09d}{CLASS_SUFFIX}", str(label).encode())
                taken = next(left, None) if shard.offset < shard_bytes else None


def _add(shard: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file that has neither time nor owner: the same pictures make the same shard."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    shard.addfile(member, io.BytesIO(content))


def indexed(directory: Path, *, classes: Sequence[str] | None = None) -> str:
    """Write the index of the tar files in a directory, and return a line about it.

    Raises:
        ConfigError: There are none.
        DataError: A picture has no class.
    """
    tars = sorted(directory.glob("*.tar"))
    if not tars:
        raise ConfigError([f"{directory} has no tar files"])
    shards, highest = [], -1
    for path in tars:
        samples = list(_samples(path))
        highest = max([highest, *(label for _, _, label, _ in samples)])
        content = b"".join(SAMPLE.pack(*sample) for sample in samples)
        beside = path.with_suffix(".samples")
        _publish(beside, content)
        shards.append(
            ImageShard(
                name=path.name,
                bytes=path.stat().st_size,
                images=len(samples),
                samples=beside.name,
                crc32=f"{zlib.crc32(content):08x}",
            )
        )
    names = tuple(classes) if classes else tuple(str(label) for label in range(highest + 1))
    _publish(directory / INDEX, ImageIndex(classes=names, shards=tuple(shards)).to_json().encode())
    pictures = sum(shard.images for shard in shards)
    return f"{directory}: {pictures} pictures of {len(names)} classes in {len(shards)} shards"


def _samples(path: Path) -> Iterator[tuple[int, int, int, int]]:
    """Yield (offset, bytes, class, CRC-32) of each picture, in the order of the shard."""
    pictures: dict[str, tuple[int, int, int]] = {}
    labels: dict[str, int] = {}
    with tarfile.open(path, "r:") as shard:
        for member in shard:
            name = PurePosixPath(member.name)
            stem, _, rest = name.name.partition(".")  # WebDataset's keys end at the first dot
            key, suffix = str(name.parent / stem), f".{rest.lower()}"
            if not member.isfile() or suffix not in SUFFIXES | {CLASS_SUFFIX}:
                continue
            file = shard.extractfile(member)
            assert file is not None
            content = file.read()
            if suffix == CLASS_SUFFIX:
                labels[key] = _label(content, place=f"{path}: {member.name}")
            else:
                pictures[key] = (member.offset_data, member.size, zlib.crc32(content))
    if not pictures or (alone := pictures.keys() ^ labels.keys()):
        problem = f"{min(alone)} is a picture or a class alone" if pictures else "it has no pictures"
        raise DataError(place=str(path), problem=problem, remedy=_REMEDY)
    for key, (offset, size, crc) in pictures.items():
        yield offset, size, labels[key], crc


def _label(content: bytes, *, place: str) -> int:
    text = content.strip()
    if not text.isdigit() or int(text) >= _MOST_CLASSES:
        raise DataError(place=place, problem=f"{text[:20]!r} is not the number of a class", remedy=_REMEDY)
    return int(text)


def _publish(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    draft = path.with_name(_DRAFT + path.name)
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tools.training.prepare_images",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--input", help="a folder with a folder for each class, or channel:NAME")
    parser.add_argument("--output", type=Path, help="an empty directory, or none yet")
    parser.add_argument("--index", help="a directory of tar shards: write their index beside them")
    # Script mode writes hyperparameters as they are named, with underscores.
    parser.add_argument(
        "--validation-share",
        "--validation_share",
        type=as_share,
        default=0.0,
        help="this share of the pictures becomes a data set of its own: OUTPUT/train, OUTPUT/validation",
    )
    parser.add_argument("--shard-bytes", "--shard_bytes", type=as_count, default=_SHARD_BYTES)
    parser.add_argument("--seed", type=int, default=0, help="of the order of the pictures")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
