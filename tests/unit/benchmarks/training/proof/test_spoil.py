"""Every way of spoiling changes the shards, and nothing beside them; the same seed, the same change."""

import random
from pathlib import Path

import pytest

from benchmarks.training.proof.spoil import Spoiling, spoil


def _checkpoint(place: Path, *, shards: int = 2) -> dict[str, bytes]:
    """Shards begin with zeros, over which zeros may be laid."""
    place.mkdir()
    content = {f"__{rank}_0.distcp": bytes(8192) + bytes([rank]) * 8192 for rank in range(shards)}
    content["metadata"] = b"the index"
    for name, one in content.items():
        (place / name).write_bytes(one)
    return content


def _content(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("how", Spoiling)
def test_shards_are_changed_and_nothing_else(tmp_path: Path, how: Spoiling, seed: int) -> None:
    before = _checkpoint(tmp_path / "one")
    told = spoil(tmp_path / "one", how, random.Random(seed))
    after = _content(tmp_path / "one")
    changed = {name for name in before if before[name] != after[name]}
    assert changed
    assert all(name in told for name in changed)
    assert after["metadata"] == before["metadata"]
    assert after.keys() == before.keys()
    _checkpoint(tmp_path / "other")
    assert spoil(tmp_path / "other", how, random.Random(seed)) == told
    assert _content(tmp_path / "other") == after


def test_each_way_does_what_it_says(tmp_path: Path) -> None:
    source = random.Random(3)
    after = {}
    for how in Spoiling:
        before = _checkpoint(tmp_path / how)
        spoil(tmp_path / how, how, source)
        after[how] = _content(tmp_path / how)
    flipped = [
        (one ^ other).bit_count()
        for name in before
        for one, other in zip(before[name], after[Spoiling.FLIP][name], strict=True)
    ]
    assert sum(flipped) == 1
    assert after[Spoiling.SWAP]["__0_0.distcp"] == before["__1_0.distcp"]
    assert {len(one) for one in after[Spoiling.GARBAGE].values()} == {len(one) for one in before.values()}
    assert sum(map(len, after[Spoiling.CUT].values())) < sum(map(len, before.values()))


def test_two_parts_of_a_single_shard_are_swapped(tmp_path: Path) -> None:
    before = _checkpoint(tmp_path / "one", shards=1)["__0_0.distcp"]
    shard = tmp_path / "one/__0_0.distcp"
    content = bytes(range(256)) * 64
    shard.write_bytes(content)
    spoil(tmp_path / "one", Spoiling.SWAP, random.Random(4))
    assert shard.read_bytes() != content
    assert sorted(shard.read_bytes()) == sorted(content)
    assert len(before) == len(content)
