"""What a checkpoint holds is what was written, or it is not used: spoiled shards, and an index with code."""

import io
import json
import os
import pickle
import random
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from benchmarks.training.proof.spoil import Spoiling, spoil
from tests.integration.training.checkpoint.learner import Learner, names_in, saved_at
from tests.integration.training.worlds import in_world
from tools.training.verify import main, verdicts
from training.preemptible import CheckpointReadError
from training.preemptible.checkpoint.hashes import HashingWriter, VerifyingReader, digest_of
from training.preemptible.checkpoint.manifest import Torn, Whole
from training.ranks.world import World

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")  # that is the point
_NEWEST = "step-00000010"


def _status(root: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((root / "status.json").read_bytes())
    return found


@pytest.mark.parametrize("how", Spoiling)
def test_M1_a_spoiled_shard_is_named_and_the_checkpoint_before_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: Spoiling
) -> None:
    saved = saved_at(tmp_path, 5)
    at_five, losses = saved.sha256(), saved.learn(5)
    saved.save()
    saved.checkpointer.wait()
    spoil(tmp_path / _NEWEST, how, random.Random(5))
    learner = Learner(tmp_path)
    assert learner.load() == 5
    assert learner.sha256() == at_five
    said = capsys.readouterr().out
    assert f"skipping torn checkpoint {_NEWEST}: " in said
    assert "__0_0.distcp" in said
    (skipped,) = _status(tmp_path)["skipped"]  # type: ignore[misc]
    assert skipped["checkpoint"] == _NEWEST  # type: ignore[has-type]
    assert "__0_0.distcp" in skipped["reason"]  # type: ignore[has-type]
    assert learner.learn(5) == losses


def test_M1_one_bit_anywhere_in_a_shard_is_found(tmp_path: Path) -> None:
    saved_at(tmp_path, 5)
    shard = tmp_path / "step-00000005/__0_0.distcp"
    whole = shard.read_bytes()
    for place in range(0, len(whole), len(whole) // 50):
        shard.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        (found,) = verdicts(tmp_path)
        assert isinstance(found, Torn), place
    shard.write_bytes(whole)
    assert isinstance(verdicts(tmp_path)[0], Whole)


def _load_on_all(world: World, root: Path) -> tuple[int, str, dict[str, str]]:
    learner = Learner(root)
    with redirect_stdout(io.StringIO()) as said:
        step = learner.load()
    return step, learner.sha256(), {"said": said.getvalue()}


def _save_on_all(world: World, root: Path, steps: tuple[int, ...]) -> list[str]:
    learner = Learner(root)
    learner.load()
    hashes = []
    for step in steps:
        learner.learn(step - learner.step)
        learner.save()
        hashes.append(learner.sha256())
    learner.checkpointer.wait()
    return hashes


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [1, 2], ids=["one rank reads both shards", "each rank reads its own"])
def test_M1_swapped_shards_are_found_by_all_ranks(tmp_path: Path, ranks: int) -> None:
    (hashes, _) = in_world(2, _save_on_all, tmp_path, (5, 10))
    first, second = (tmp_path / _NEWEST / name for name in ("__0_0.distcp", "__1_0.distcp"))
    one, other = first.read_bytes(), second.read_bytes()
    size = 2**12  # of equal size, or the sizes alone would give it away
    first.write_bytes(one[:-size] + other[-size:])
    second.write_bytes(other[:-size] + one[-size:])
    found = in_world(ranks, _load_on_all, tmp_path)
    assert {(step, sha256) for step, sha256, _ in found} == {(5, hashes[0])}
    assert f"skipping torn checkpoint {_NEWEST}: " in found[0][2]["said"]


@pytest.mark.thorough
def test_M1_where_one_rank_alone_meets_the_damage_all_go_back(tmp_path: Path) -> None:
    (hashes, _) = in_world(2, _save_on_all, tmp_path, (5, 10))
    shard = tmp_path / _NEWEST / "__1_0.distcp"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 4
    shard.write_bytes(content)
    found = in_world(2, _load_on_all, tmp_path)
    assert [(step, sha256) for step, sha256, _ in found] == [(5, hashes[0])] * 2
    assert "rank 1: DamagedError: __1_0.distcp is damaged" in found[0][2]["said"]


def test_M2_where_all_are_spoiled_each_is_named_and_nothing_is_deleted(tmp_path: Path) -> None:
    saved_at(tmp_path, 5, 10)
    source = random.Random(3)
    for name, how in (("step-00000005", Spoiling.FLIP), (_NEWEST, Spoiling.CUT)):
        spoil(tmp_path / name, how, source)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(
        CheckpointReadError, match=rf"no checkpoint can be read: {_NEWEST}: .*; step-00000005: "
    ):
        Learner(tmp_path).load()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


class _Code:
    """A pickle of it runs a command when it is loaded, without a word."""

    def __init__(self, proof: Path) -> None:
        self._proof = proof

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self._proof),)


@pytest.mark.parametrize("hashed", ["hash of before", "hash of the code", "no hashes"])
def test_M3_code_in_the_index_is_never_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hashed: str
) -> None:
    root, proof = tmp_path / "job", tmp_path / "ran"
    saved_at(root, 5, 10)
    index, manifest = root / _NEWEST / "metadata", root / _NEWEST / "manifest.json"
    index.write_bytes(pickle.dumps(_Code(proof)).ljust(index.stat().st_size, b"."))
    told = json.loads(manifest.read_bytes())
    if hashed == "hash of the code":  # by somebody who may write there
        told["hashes"]["metadata"] = digest_of(index.read_bytes())
    elif hashed == "no hashes":
        del told["hashes"]
    manifest.write_text(json.dumps(told))
    assert Learner(root).load() == 5
    assert not proof.exists()
    assert f"skipping torn checkpoint {_NEWEST}: rank 0: DamagedError: " in capsys.readouterr().out


def test_M3_code_among_the_options_of_the_optimizer_is_never_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, proof = tmp_path / "job", tmp_path / "ran"
    saved_at(root, 5, 10)
    code = io.BytesIO()
    torch.save(_Code(proof), code)
    _without_hashes(root / _NEWEST, {"optimizer.param_groups": code.getvalue()})
    assert Learner(root).load() == 5
    assert not proof.exists()
    assert "is no plain value, and is not run" in capsys.readouterr().out


def _without_hashes(checkpoint: Path, replaced: dict[str, bytes] | None = None) -> None:
    """As a program wrote it before there were hashes; some items end in other bytes."""
    shard, index_file = checkpoint / "__0_0.distcp", checkpoint / "metadata"
    index = pickle.loads(index_file.read_bytes())
    content = shard.read_bytes()
    for item, place in index.storage_data.items():
        del place.hash
        for start, code in (replaced or {}).items():
            if item.fqn.startswith(start):
                place.offset, place.length = len(content), len(code)
                content += code
    shard.write_bytes(content)
    index_file.write_bytes(pickle.dumps(index))
    manifest = json.loads((checkpoint / "manifest.json").read_bytes())
    del manifest["hashes"]
    manifest["files"] = {"__0_0.distcp": len(content), "metadata": index_file.stat().st_size}
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))


def test_one_written_before_there_were_hashes_loads_and_the_next_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = saved_at(tmp_path, 5)
    _without_hashes(tmp_path / "step-00000005")
    learner = Learner(tmp_path)
    assert learner.load() == 5
    assert learner.sha256() == saved.sha256()
    assert capsys.readouterr().out.count("checkpoint step-00000005 has no hashes") == 1
    learner.learn(1)
    learner.save()
    learner.checkpointer.wait()
    Learner(tmp_path).load()
    assert "has no hashes" not in capsys.readouterr().out


def test_the_first_upload_that_was_interrupted_is_no_reason_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved_at(tmp_path, 5)
    (tmp_path / "step-00000005/__0_0.distcp").unlink()
    assert Learner(tmp_path).load() == 0
    assert capsys.readouterr().out.endswith("__0_0.distcp is missing\nstarting from scratch\n")


def test_the_seconds_of_a_resume_are_told_by_phase(tmp_path: Path) -> None:
    saved_at(tmp_path, 5)
    resumed = Learner(tmp_path).checkpointer.load_newest()
    assert resumed is not None
    assert resumed.seconds.keys() == {"look", "plan", "read", "verify", "apply"}
    assert all(seconds >= 0 for seconds in resumed.seconds.values())


def test_a_directory_is_verified_without_the_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved_at(tmp_path, 5, 10)
    assert main([str(tmp_path)]) == 0
    spoil(tmp_path / "step-00000005", Spoiling.GARBAGE, random.Random(1))
    assert main([str(tmp_path)]) == 1
    newest, before = capsys.readouterr().out.splitlines()[-2:]
    assert newest == f"{_NEWEST}  whole, by the multilinear64-sha256 of every item"
    assert before.startswith("step-00000005  torn: __0_0.distcp is damaged: ")
    assert names_in(tmp_path) == ["status.json", "step-00000005", _NEWEST]


_SIZES = (300_000, 700_000, 5, 400_000)
"""Elements of fp32: some take more than one block of those that are hashed, some take a few bytes."""


def _large() -> dict[str, torch.Tensor]:
    source = torch.Generator().manual_seed(1)
    return {str(number): torch.rand(size, generator=source) for number, size in enumerate(_SIZES)}


def _loaded(folder: Path, index: Metadata, kind: type[VerifyingReader]) -> dict[str, torch.Tensor]:
    found = {name: torch.zeros_like(one) for name, one in _large().items()}
    load(found, storage_reader=kind(folder, index=index, seconds={}), no_dist=True)
    return found


class _InBits(VerifyingReader):
    """As from a stream that gives less than it is asked for."""

    def _slice_file(self, file: Any, sinfo: Any) -> Any:
        stream: Any = super()._slice_file(file, sinfo)
        return SimpleNamespace(readinto=lambda block: stream.readinto(block[:100_001]))


@pytest.mark.parametrize("kind", [VerifyingReader, _InBits])
def test_M1_items_of_many_blocks_are_what_was_saved_or_named(
    tmp_path: Path, kind: type[VerifyingReader]
) -> None:
    index = save(_large(), storage_writer=HashingWriter(tmp_path), no_dist=True)
    found = _loaded(tmp_path, index, kind)
    assert all(torch.equal(found[name], one) for name, one in _large().items())
    shard = tmp_path / "__0_0.distcp"
    whole = shard.read_bytes()
    (place,) = (one for item, one in index.storage_data.items() if item.fqn == "1")
    for share in (0.01, 0.3, 0.7, 0.99):  # of each of its blocks
        at = place.offset + int(share * place.length)
        shard.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CheckpointException) as raised:
            _loaded(tmp_path, index, kind)
        (told,) = (str(cause) for cause, _ in raised.value.failures.values())
        assert told.startswith("__0_0.distcp is damaged: 1, ")


def test_M1_a_damaged_item_is_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = save(_large(), storage_writer=HashingWriter(tmp_path), no_dist=True)
    shard = tmp_path / "__0_0.distcp"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    decoded = []

    def decode(*_: object, **__: object) -> torch.Tensor:
        decoded.append(1)
        return torch.zeros(_SIZES[-1])

    monkeypatch.setattr(torch, "load", decode)
    last = max(index.storage_data.items(), key=lambda one: one[1].offset)[0]
    with pytest.raises(CheckpointException):
        load(
            {last.fqn: torch.zeros(_SIZES[int(last.fqn)])},
            storage_reader=VerifyingReader(tmp_path, index=index, seconds={}),
            no_dist=True,
        )
    assert decoded == []
