"""Turn the bytes of a picture into the pixels of a batch: decode, cut out, resize, maybe mirror.

Random numbers follow from the seed, the image's number and the epoch alone, so it does not matter which
thread decodes an image, nor in which attempt. torchvision's own random transforms draw from the generator of
the process, which threads would share: so the numbers are drawn here, and torchvision applies them.
"""

import math
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any

import torch
from torch import Tensor

from training.data import seed_of
from training.errors import DataError
from training.vision.torchvision_schema import declare

_RATIOS = (3 / 4, 4 / 3)
_TRIES = 10
_MARGIN = 0.875
"""Share of the shorter side that is seen where nothing is random: 224 of 256 pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Random numbers of a view, from 0 to 1."""

    areas: tuple[float, ...]
    ratios: tuple[float, ...]
    top: float
    left: float
    is_mirrored: bool

    @classmethod
    def of(cls, seed: int, number: int, epoch: int) -> "Draw":
        source = torch.Generator().manual_seed(seed_of(seed, "augment", number, epoch))
        drawn: list[float] = torch.rand(2 * _TRIES + 3, generator=source).tolist()
        return cls(
            areas=tuple(drawn[:_TRIES]),
            ratios=tuple(drawn[_TRIES : 2 * _TRIES]),
            top=drawn[-3],
            left=drawn[-2],
            is_mirrored=drawn[-1] < 1 / 2,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    side: int
    """Pixels of the side of the resulting square."""
    draw: Draw | None = None
    """Random numbers of the view; None: the middle of the picture."""
    least_area: float = 0.08
    """Least share of the picture's area that a random view shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    top: int
    left: int
    height: int
    width: int


def box_of(view: View, height: int, width: int) -> Box:
    """Return the part of a picture that is seen; a random one is drawn like torchvision's RandomResizedCrop.

    Args:
        view: Random numbers of the view, and its least area.
        height: Pixels of the picture.
        width: Pixels of the picture.
    """
    if view.draw is None:
        side = max(1, round(_MARGIN * min(height, width)))
        return Box(top=(height - side) // 2, left=(width - side) // 2, height=side, width=side)
    low, high = (math.log(ratio) for ratio in _RATIOS)
    for area, ratio in zip(view.draw.areas, view.draw.ratios, strict=True):
        wanted = height * width * (view.least_area + (1 - view.least_area) * area)
        aspect = math.exp(low + (high - low) * ratio)
        wide, tall = round(math.sqrt(wanted * aspect)), round(math.sqrt(wanted / aspect))
        if 0 < wide <= width and 0 < tall <= height:
            top, left = int(view.draw.top * (height - tall + 1)), int(view.draw.left * (width - wide + 1))
            return Box(top=top, left=left, height=tall, width=wide)
    tall = min(height, round(width / _RATIOS[0]))
    wide = min(width, round(height * _RATIOS[1]))
    return Box(top=(height - tall) // 2, left=(width - wide) // 2, height=tall, width=wide)


def decoded(content: bytes, view: View, *, title: str) -> Tensor:
    """Return bytes of shape (colours, side, side). A large JPEG is decoded at a half, a quarter or an eighth.

    Args:
        content: Bytes of the file.
        view: Part and size that are wanted.
        title: Name of the picture in messages.

    Raises:
        DataError: It is no picture.
    """
    pictures, functional = libraries()
    try:
        with pictures.open(BytesIO(content)) as picture:
            width, height = picture.size
            box = box_of(view, height, width)
            scale = min(box.height, box.width) / view.side
            picture.draft("RGB", (math.ceil(width / scale), math.ceil(height / scale)))
            whole = picture.convert("RGB")
    except (OSError, ValueError, SyntaxError, pictures.DecompressionBombError) as error:  # SyntaxError: PNG
        raise DataError(
            place=title,
            problem=f"it cannot be decoded: {error}",
            remedy="remove it, or replace it by a whole picture, and write the index again",
        ) from error
    down, across = whole.height / height, whole.width / width
    part = functional.resized_crop(
        whole,
        int(box.top * down),
        int(box.left * across),
        max(1, int(box.height * down)),
        max(1, int(box.width * across)),
        [view.side, view.side],
        interpolation=functional.InterpolationMode.BICUBIC,
    )
    if view.draw is not None and view.draw.is_mirrored:
        part = functional.horizontal_flip(part)
    return functional.pil_to_tensor(part)  # type: ignore[no-any-return]  # torchvision has no types


@cache
def libraries() -> tuple[Any, Any]:
    """Import Pillow's module of pictures, and torchvision's transforms as functions.

    It takes seconds the first time; other threads wait for that.
    """
    declare()
    from PIL import Image  # noqa: PLC0415  only where pictures are read
    from torchvision.transforms.v2 import functional  # noqa: PLC0415  likewise

    return Image, functional
