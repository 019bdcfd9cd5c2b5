from dataclasses import replace

import pytest
import torch

from training.config import read_config
from training.config.decoder_shape import PRESETS
from training.config.vision_shape import VISION_PRESETS, Pooling
from training.errors import ConfigError
from training.models.transformer import Block, Transformer, flops_per_token
from training.vision.vit import VisionTransformer, patches_of, scaled


@pytest.mark.parametrize(
    ("preset", "millions"),
    [
        # Of the papers' tables, with the head of 1,000 classes.
        ("vit-tiny", 5.7),
        ("vit-small", 22.1),
        ("vit-base", 86.6),
        ("vit-large", 304.3),
        ("vit-huge", 632.0),
        ("vit-giant", 1012.6),
        ("vit-gigantic", 1844.4),
        ("vit-22b", 21_756.7),
    ],
)
def test_a_preset_has_the_parameters_of_its_paper(preset: str, millions: float) -> None:
    with torch.device("meta"):
        model = VisionTransformer(VISION_PRESETS[preset])
    assert sum(one.numel() for one in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.06)


def test_blocks_of_a_decoder_have_the_names_that_checkpoints_of_before_have() -> None:
    with torch.device("meta"):
        names = [name for name, _ in Transformer(PRESETS["tiny"]).blocks["0"].named_parameters()]
    assert names == [
        "attention_norm.weight",
        "attention.query.weight",
        "attention.key.weight",
        "attention.value.weight",
        "attention.output.weight",
        "feed_forward_norm.weight",
        "feed_forward.gate.weight",
        "feed_forward.up.weight",
        "feed_forward.output.weight",
    ]


def test_flops_of_an_image_are_six_times_its_multiplications() -> None:
    tokens, patches, width = 197, 196, 192
    blocks = 12 * (4 * width * width + 2 * width * 768) * tokens
    attention = 12 * 2 * width * tokens * tokens
    outside = 768 * width * patches + width * 1000
    shape = VISION_PRESETS["vit-tiny"]
    whole = flops_per_token(shape) * shape.sequence_length
    assert whole == pytest.approx(6 * (blocks + attention + outside), rel=1e-6)


def test_a_parallel_block_adds_attention_and_feed_forward_of_one_norm() -> None:
    shape = replace(VISION_PRESETS["vit-nano"], is_parallel=True, pooling=Pooling.MEAN)
    torch.manual_seed(1)
    block = Block(shape)
    x = torch.randn(2, shape.sequence_length, shape.width)
    normed = block.attention_norm(x)
    torch.testing.assert_close(block(x), x + block.attention(normed) + block.feed_forward(normed))


def test_every_patch_is_seen_by_every_other() -> None:
    torch.manual_seed(1)
    shape = VISION_PRESETS["vit-nano"]
    model = VisionTransformer(shape)
    for one in model.parameters():
        torch.nn.init.normal_(one, std=0.1)
    image = torch.randn(1, 3, 32, 32)
    last = image.clone()
    last[:, :, -1, -1] += 10
    with torch.no_grad():
        before, after = (model.blocks["0"](model.embedding(one)) for one in (image, last))
    assert ((before - after).abs().amax(dim=(0, 2)) > 0).all()


def test_patches_are_in_the_order_of_the_convolution() -> None:
    images = torch.arange(2 * 3 * 4 * 6).view(2, 3, 4, 6) / 100
    kernel = torch.randn(5, 3, 2, 2, generator=torch.Generator().manual_seed(1))
    wanted = torch.nn.functional.conv2d(images, kernel, stride=2).flatten(2).transpose(1, 2)
    torch.testing.assert_close(patches_of(images, 2) @ kernel.flatten(1).T, wanted)


def test_bytes_are_scaled_and_other_numbers_are_so_already() -> None:
    shape = replace(VISION_PRESETS["vit-nano"], pixel_mean=(0.2, 0.4, 0.6))
    bright = torch.full((1, 3, 1, 1), 255, dtype=torch.uint8)
    torch.testing.assert_close(scaled(bright, shape).flatten(), torch.tensor([1.6, 1.2, 0.8]))
    assert scaled(bright.float(), shape) is not None
    assert scaled(bright.float(), shape).max() == 255


@pytest.mark.parametrize(
    ("preset", "share", "unit", "hidden"),
    [("vit-tiny", 0.6, 32, 4 * 30), ("vit-huge", 0.6, 14, 154), ("vit-nano", 0.5, 8, 8)],
)
def test_hidden_is_the_share_in_squares(preset: str, share: float, unit: int, hidden: int) -> None:
    shape = replace(VISION_PRESETS[preset], masked=share)
    assert (shape.mask_unit, shape.masked_patches, shape.targets) == (unit, hidden, hidden)


def test_what_is_as_usual_does_not_change_a_fingerprint_and_what_is_not_does() -> None:
    shape = VISION_PRESETS["vit-tiny"]
    assert replace(shape, classes=1000).fingerprint == shape.fingerprint
    assert replace(shape, classes=10).fingerprint != shape.fingerprint


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            "--preset tiny --classes 5 --objective masked",
            ["classes needs a model", "objective needs a model"],
        ),
        ("--preset vit-tiny --sequence_length 9 --z_loss 0.1", ["sequence_length is for", "z_loss is for"]),
        ("--preset vit-tiny --lora_rank 4 --init_from x", ["lora_rank is for texts; preset vit-tiny is of"]),
        ("--preset vit-tiny --image_size 100", ["image_size 100 does not divide by the model's patch of 16"]),
        ("--preset vit-tiny --objective masked --mask_share 1", ["mask_share must be between 0 and 1"]),
        ("--preset vit-tiny --label_smoothing 1", ["label_smoothing must be below 1"]),
        ("--preset vit-tiny --new_head true", ["new_head needs init_from"]),
        ("--preset vit-22b", ["which has no pooling by the mean and no parallel layers and no norms of"]),
    ],
)
def test_options_that_do_not_go_together_are_all_refused(options: str, told: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(options.split(), {})
    assert len(caught.value.problems) == len(told)
    assert all(any(one in problem for problem in caught.value.problems) for one in told)
