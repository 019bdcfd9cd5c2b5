"""The copy of the newest checkpoint on a warm pool: the right one is read, others are as if not there."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.integration.training.buckets import CREDENTIALS, S3Server, s3_server
from tests.integration.training.checkpoint.learner import Learner
from training.preemptible.checkpoint import open_store


@pytest.fixture(scope="module")
def shared_server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def server(shared_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return shared_server


@pytest.fixture
def location(server: S3Server) -> str:
    return f"s3://{server.new_bucket()}/job"


def _saved(server: S3Server, location: str, cache: Path | str, *steps: int, depth: int = 2) -> Learner:
    """A fresh training that saved after these steps."""
    learner = Learner(open_store(location, server.env, cache_dir=str(cache)), depth=depth)
    learner.load()
    for step in steps:
        learner.learn(step - learner.step)
        learner.save()
    learner.checkpointer.wait()
    return learner


def _resumed(server: S3Server, location: str, cache: Path) -> tuple[Learner, int]:
    """And how often it read a shard from S3."""
    learner = Learner(open_store(location, server.env, cache_dir=str(cache)))
    server.served.clear()
    learner.load()
    reads = [path for method, path in server.served if method == "GET" and path.endswith(".distcp")]
    # The line of the log with the hash of the file comes from S3, as it is there to compare.
    return learner, len(reads) - 1


def _copies(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.distcp"))


def test_a_resume_on_the_same_host_reads_the_copy_and_no_shard_from_s3(
    server: S3Server, location: str, tmp_path: Path
) -> None:
    saved = _saved(server, location, tmp_path, 2)
    resumed, reads = _resumed(server, location, tmp_path)
    assert (resumed.step, reads) == (2, 0)
    assert resumed.sha256() == saved.sha256()
    elsewhere, reads = _resumed(server, location, tmp_path / "another host")
    assert reads > 0
    assert elsewhere.sha256() == saved.sha256()


def test_only_the_newest_checkpoint_is_kept(server: S3Server, location: str, tmp_path: Path) -> None:
    saved = _saved(server, location, tmp_path, 1, 2, 3)
    (copy,) = _copies(tmp_path)
    assert "step-00000003" in copy.parent.name
    resumed, reads = _resumed(server, location, tmp_path)
    assert (resumed.step, reads) == (3, 0)
    assert resumed.sha256() == saved.sha256()


def test_a_copy_of_the_same_step_from_a_save_that_was_replaced_is_not_used(
    server: S3Server, location: str, tmp_path: Path
) -> None:
    _saved(server, location, tmp_path, 2)
    store = open_store(location, server.env)
    store.remove("step-00000002")
    other = _saved(server, location, "", 1, 2)
    (copy,) = _copies(tmp_path)
    assert store.sizes("step-00000002")["__0_0.distcp"] == copy.stat().st_size
    _, reads = _resumed(server, location, tmp_path)
    assert reads > 0
    assert other.step == 2


@pytest.mark.parametrize("harm", ["cut short", "unfinished", "gone"])
def test_a_copy_that_is_not_whole_is_not_used(
    server: S3Server, location: str, tmp_path: Path, harm: str
) -> None:
    saved = _saved(server, location, tmp_path, 2)
    (copy,) = _copies(tmp_path)
    if harm == "cut short":
        copy.write_bytes(copy.read_bytes()[:-1])
    elif harm == "unfinished":
        copy.rename(copy.with_name(f".draft-{copy.name}"))
    else:
        copy.unlink()
    resumed, reads = _resumed(server, location, tmp_path)
    assert reads > 0
    assert resumed.sha256() == saved.sha256()


def test_the_copy_of_another_job_is_not_used_and_goes(
    server: S3Server, location: str, tmp_path: Path
) -> None:
    _saved(server, location, tmp_path, 2)
    other = f"{location}-2"
    _saved(server, other, "", 2)
    _, reads = _resumed(server, other, tmp_path)
    assert reads > 0
    _saved(server, other, tmp_path, 3)
    (copy,) = _copies(tmp_path)
    assert "step-00000003" in copy.parent.name


def test_a_disk_with_too_little_room_gets_no_copy_and_the_save_succeeds(
    server: S3Server, location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(total=1_000_000, free=100_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    saved = _saved(server, location, tmp_path, 2)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    resumed, reads = _resumed(server, location, tmp_path)
    assert reads > 0
    assert resumed.sha256() == saved.sha256()


def test_a_cache_that_cannot_be_written_costs_nothing_but_the_copy(
    server: S3Server, location: str, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("not a directory")
    saved = _saved(server, location, tmp_path / "cache", 2)
    resumed, reads = _resumed(server, location, tmp_path / "cache")
    assert (resumed.step, resumed.sha256()) == (2, saved.sha256())
    assert reads > 0
