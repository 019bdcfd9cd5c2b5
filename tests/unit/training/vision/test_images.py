import io
import json
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.unit.training.vision.pictures import CLASSES, folders
from tools.training.prepare_images import main
from training.config import read_config
from training.config.choices import Augment
from training.data.batches import IGNORED
from training.data.validation import FirstSamples
from training.errors import DataError
from training.vision.image_batches import ImageBatches, ImageReader, ImageValidation
from training.vision.images import Images, SyntheticImages, open_images
from training.vision.pictures import Draw, View, box_of

_CONFIG = read_config(["--preset=vit-nano", "--batch_size=4"], {})
_VIEW = View(side=32)


def _prepared(place: Path, *options: str) -> Path:
    folders(place / "pictures")
    assert main(["--input", str(place / "pictures"), "--output", str(place / "data"), *options]) == 0
    return place / "data"


def _opened(directory: Path, **changed: object) -> Images:
    return open_images(replace(_CONFIG, data=str(directory), **changed), {})  # type: ignore[arg-type]  # of several types


def _reader(images: Images, *, threads: int = 2, augment: Augment = Augment.CROP) -> ImageReader:
    config = replace(_CONFIG, decode_threads=threads)
    return ImageReader.of(config, images, augment=augment)


def _bytes_of(images: Images) -> set[tuple[bytes, int]]:
    assert images.count is not None
    found = (images.image(number, _VIEW) for number in range(images.count))
    return {(image.numpy().tobytes(), label) for image, label in found}


def test_shards_hold_the_pictures_of_the_folders_in_another_order(tmp_path: Path) -> None:
    data = _prepared(tmp_path, "--shard-bytes", "20000")
    shards, plain = _opened(data), _opened(tmp_path / "pictures")
    assert (shards.count, shards.classes, plain.count, plain.classes) == (12, 3, 12, 3)
    assert _bytes_of(shards) == _bytes_of(plain)
    labels = [shards.image(number, _VIEW)[1] for number in range(12)]
    assert labels != sorted(labels)
    index = json.loads((data / "images.json").read_bytes())
    assert index["classes"] == list(CLASSES)
    assert len(index["shards"]) > 1


def test_the_same_pictures_make_the_same_shards(tmp_path: Path) -> None:
    first, second = _prepared(tmp_path / "a"), _prepared(tmp_path / "b")
    assert {one.name: one.read_bytes() for one in first.iterdir()} == {
        one.name: one.read_bytes() for one in second.iterdir()
    }
    assert _opened(first).identity == _opened(second).identity


def test_a_validation_share_is_a_data_set_of_its_own(tmp_path: Path) -> None:
    data = _prepared(tmp_path, "--validation-share", "0.25")
    parts = [_bytes_of(_opened(data / name, batch_size=1)) for name in ("train", "validation")]
    assert [len(one) for one in parts] == [9, 3]
    assert parts[0] | parts[1] == _bytes_of(_opened(tmp_path / "pictures"))


def test_shards_of_others_are_indexed_where_they_are(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    picture = (folders(tmp_path / "pictures") / "cat/0.jpg").read_bytes()
    with tarfile.open(theirs / "000.tar", "w") as shard:
        for name, content in {
            "./a/n01_1.cls": b"7\n",
            "./a/n01_1.jpeg": picture,
            "./a/n01_1.json": b"{}",
            "./b/n01_1.jpg": picture,
            "./b/n01_1.cls": b"2",
        }.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            shard.addfile(member, io.BytesIO(content))
    assert main(["--index", str(theirs)]) == 0
    images = _opened(theirs, batch_size=1)
    assert (images.count, images.classes) == (2, 8)
    assert [images.image(number, _VIEW)[1] for number in range(2)] == [7, 2]


def test_a_picture_without_a_class_is_named_and_no_index_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tarfile.open(tmp_path / "000.tar", "w") as shard:
        shard.addfile(tarfile.TarInfo("one.jpg"), io.BytesIO())
    assert main(["--index", str(tmp_path)]) == 1
    assert "one is a picture or a class alone; each picture KEY.jpg needs KEY.cls" in capsys.readouterr().err
    assert not (tmp_path / "images.json").exists()


def _spoiled(data: Path, how: str) -> None:
    shard, samples = data / "shard-00000.tar", data / "shard-00000.samples"
    match how:
        case "a byte of a picture":
            content = bytearray(shard.read_bytes())
            content[700] ^= 1
            shard.write_bytes(content)
        case "a byte of the samples":
            content = bytearray(samples.read_bytes())
            content[0] ^= 1
            samples.write_bytes(content)
        case "a short shard":
            shard.write_bytes(shard.read_bytes()[:-1])
        case "no index":
            (data / "images.json").unlink()
        case "an index of tomorrow":
            told = json.loads((data / "images.json").read_bytes()) | {"version": 2}
            (data / "images.json").write_text(json.dumps(told))
        case _:
            raise AssertionError(how)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("a byte of a picture", "has other bytes from 512 to"),
        ("a byte of the samples", "shard-00000.samples is not what images.json says"),
        ("a short shard", "files are not as images.json says: shard-00000.tar has"),
        ("no index", "its tar files have no images.json; write it: python -m tools.training.prepare_images"),
        ("an index of tomorrow", "version 2, this program reads 1"),
    ],
)
def test_what_is_not_as_it_was_written_is_refused_with_a_remedy(how: str, told: str, tmp_path: Path) -> None:
    _spoiled(data := _prepared(tmp_path), how)
    with pytest.raises(DataError, match=told.replace("(", "\\(")):
        _bytes_of(_opened(data))


def test_data_that_does_not_fit_the_model_is_refused(tmp_path: Path) -> None:
    data = _prepared(tmp_path)
    with pytest.raises(DataError, match=r"it has 3 classes, the model 2 .*; set classes 3"):
        _opened(data, classes=2)
    with pytest.raises(DataError, match="it has 12 images, a step needs batch_size 13"):
        _opened(data, batch_size=13)
    with pytest.raises(DataError, match=r"there is neither images\.json nor a folder of images"):
        _opened(data.parent / "pictures/cat")
    (data / "index.json").write_text("{}")
    (data / "images.json").unlink()
    with pytest.raises(DataError, match="it holds tokens, the model is of images"):
        _opened(data)


def test_what_is_no_picture_is_named(tmp_path: Path) -> None:
    place = folders(tmp_path)
    (place / "cat/0.jpg").write_bytes(b"not a picture")
    with pytest.raises(DataError, match=r"cat/0\.jpg: it cannot be decoded"):
        _opened(place).image(0, _VIEW)


def test_a_picture_with_a_broken_part_is_named(tmp_path: Path) -> None:
    place = folders(tmp_path)
    picture = Image.effect_noise((300, 300), 80)  # its data is longer than a block that Pillow reads at once
    picture.save(place / "cat/0.png")
    whole = (place / "cat/0.png").read_bytes()
    second = whole.index(b"IDAT", whole.index(b"IDAT") + 4)
    (place / "cat/0.jpg").write_bytes(whole[:second] + b"\0\0\0\0" + whole[second + 4 :])
    (place / "cat/0.png").unlink()
    with pytest.raises(DataError, match=r"cat/0\.jpg: it cannot be decoded: broken PNG"):
        _opened(place).image(0, _VIEW)


def _steps(images: Images, *, ranks: int, threads: int = 2) -> list[tuple[Tensor, ...]]:
    """Batches of eight steps, which are more than two epochs, put together from all ranks."""
    parts = [
        ImageBatches(reader=_reader(images, threads=threads), size=4, rank=rank, ranks=ranks)
        for rank in range(ranks)
    ]
    return [
        tuple(torch.cat(rows) for rows in zip(*(one.at(step) for one in parts), strict=True))
        for step in range(1, 9)
    ]


def _are_equal(ours: list[tuple[Tensor, ...]], theirs: list[tuple[Tensor, ...]]) -> bool:
    pairs = zip(ours, theirs, strict=True)
    return all(torch.equal(one, other) for pair in pairs for one, other in zip(*pair, strict=True))


def test_batches_are_the_same_whatever_the_number_of_ranks_and_threads(tmp_path: Path) -> None:
    images = _opened(_prepared(tmp_path))
    alone = _steps(images, ranks=1)
    assert _are_equal(_steps(images, ranks=2, threads=1), alone)
    assert _are_equal(_steps(images, ranks=4, threads=3), alone)
    last = ImageBatches(reader=_reader(images), size=4, rank=0, ranks=1).at(8)  # as after a resume
    assert _are_equal([last], alone[7:])


def test_an_epoch_has_every_image_once_and_crops_it_anew(tmp_path: Path) -> None:
    images = _opened(_prepared(tmp_path))
    steps = _steps(images, ranks=1)
    labels = [torch.cat([batch[1] for batch in steps[first : first + 3]]).flatten() for first in (0, 3)]
    assert [one.bincount().tolist() for one in labels] == [[4, 4, 4], [4, 4, 4]]
    epochs = (steps[:3], steps[3:6])
    first, second = ({row.numpy().tobytes() for batch in one for row in batch[0]} for one in epochs)
    assert len(first) == len(second) == 12
    assert not first & second


def test_without_augmentation_an_image_is_the_same_in_every_epoch(tmp_path: Path) -> None:
    reader = _reader(_opened(_prepared(tmp_path)), augment=Augment.NONE)
    batches = ImageBatches(reader=reader, size=4, rank=0, ranks=1)
    seen = {row.numpy().tobytes() for step in range(1, 7) for row in batches.at(step)[0]}
    assert len(seen) == 12


@pytest.mark.parametrize("ranks", [1, 2])
def test_validation_has_every_image_once(ranks: int, tmp_path: Path) -> None:
    images = _opened(_prepared(tmp_path))
    parts = [
        ImageValidation(
            reader=_reader(images, augment=Augment.NONE),
            samples=FirstSamples(samples=12, is_endless=False, share=5, rank=rank, ranks=ranks),
        )
        for rank in range(ranks)
    ]
    counted = [
        int(label)
        for one in parts
        for number in range(one.count)
        for label in one.at(number)[1].flatten()
        if label != IGNORED
    ]
    assert sorted(counted) == [0] * 4 + [1] * 4 + [2] * 4


def test_hidden_patches_are_drawn_for_an_image_and_an_epoch() -> None:
    config = read_config(["--preset=vit-tiny", "--objective=masked", "--batch_size=4"], {})
    images = SyntheticImages(classes=10, seed=0)
    batches = ImageBatches(
        reader=ImageReader.of(config, images, augment=Augment.NONE), size=4, rank=0, ranks=1
    )
    hidden = batches.at(1)[1]
    assert hidden.sum(dim=1).tolist() == [120] * 4
    assert len({row.numpy().tobytes() for row in hidden}) == 4
    assert torch.equal(batches.at(1)[1], hidden)
    squares = hidden.view(4, 7, 2, 7, 2).sum(dim=(2, 4))
    assert set(squares.unique().tolist()) == {0, 4}


def test_made_up_images_of_a_class_are_alike() -> None:
    images = SyntheticImages(classes=2, seed=0)
    found: dict[int, list[Tensor]] = {0: [], 1: []}
    for number in range(20):
        image, label = images.image(number, _VIEW)
        found[label].append(image.float())
    means = [torch.stack(found[label]).mean(dim=0) for label in (0, 1)]
    spread = torch.stack(found[0]).std(dim=0).mean()
    assert (means[0] - means[1]).abs().mean() > spread / 2
    with ThreadPoolExecutor(2) as pool:
        again = list(pool.map(lambda number: images.image(number, _VIEW)[0], range(20)))
    assert torch.equal(again[3], images.image(3, _VIEW)[0])


def test_a_view_lies_inside_of_the_picture_and_is_not_smaller_than_asked_for() -> None:
    for number in range(200):
        view = View(side=8, draw=Draw.of(0, number, 1), least_area=0.25)
        box = box_of(view, 30, 50)
        assert 0 <= box.top <= box.top + box.height <= 30
        assert 0 <= box.left <= box.left + box.width <= 50
        assert box.height * box.width >= 0.23 * 30 * 50
    middle = box_of(View(side=8), 40, 60)
    assert (middle.top, middle.left, middle.height, middle.width) == (2, 12, 35, 35)
    assert box_of(View(side=8, draw=Draw.of(0, 1, 0)), 1, 500).height == 1
