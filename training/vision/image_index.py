"""Index of the tar shards in a folder: `images.json`, which lies beside them.

    {"version": 1, "classes": ["cat", "dog"],
     "shards": [{"name": "shard-00000.tar", "bytes": 104857600, "images": 900,
                 "samples": "shard-00000.samples", "crc32": "1c291ca3"}]}

A shard is a plain tar file with a pair KEY.jpg and KEY.cls for each image, as WebDataset writes them: the
class is a number, in digits. `samples` has twenty bytes for each image, little-endian: where its bytes begin
in the shard, how many there are, its class and their CRC-32; `crc32` is of that file. So an image is read by
its number, and no reader walks through a tar file.
"""

import json
import struct
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

from training.data.index import parsed

INDEX = "images.json"
SAMPLE = struct.Struct("<QIII")
"""Entry of an image: offset, bytes, class, CRC-32."""
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp"})
CLASS_SUFFIX = ".cls"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageShard:
    name: str
    bytes: int
    images: int
    samples: str
    crc32: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageIndex:
    classes: tuple[str, ...]
    shards: tuple[ImageShard, ...]

    def to_json(self) -> str:
        document = {
            "version": _VERSION,
            "classes": list(self.classes),
            "shards": [asdict(shard) for shard in self.shards],
        }
        return json.dumps(document, indent=1) + "\n"


def parse_index(text: bytes, *, place: str) -> ImageIndex:
    """Read an index. Raises DataError if it is not one of ours, or contradicts itself."""
    remedy = "write it again with python -m tools.training.prepare_images --index"
    return parsed(text, _index, place=place, name=INDEX, remedy=remedy)


def _index(document: Any) -> ImageIndex:  # noqa: ANN401  what JSON is
    if document["version"] != _VERSION:
        raise ValueError(f"version {document['version']!r}, this program reads {_VERSION}")
    shards = tuple(
        ImageShard(
            name=str(shard["name"]),
            bytes=int(shard["bytes"]),
            images=int(shard["images"]),
            samples=str(shard["samples"]),
            crc32=str(shard["crc32"]),
        )
        for shard in document["shards"]
    )
    if not sum(shard.images for shard in shards):
        raise ValueError("it lists no images")
    for shard in shards:
        for name in (shard.name, shard.samples):
            if PurePosixPath(name).name != name:
                raise ValueError(f"{name!r} is not in the folder of the index")
    return ImageIndex(classes=tuple(str(name) for name in document["classes"]), shards=shards)
