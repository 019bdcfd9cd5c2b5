"""What a checkpoint store promises, held to each there is."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.training.buckets import CREDENTIALS, S3Server, s3_server
from tests.integration.training.checkpoint.learner import Learner
from training.preemptible.checkpoint import CheckpointStore, open_store

Opened = Callable[[str], CheckpointStore]
"""The store of a job by its name."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(params=["directory", "s3"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    if request.param == "directory":
        return lambda job: open_store(str(tmp_path / job), {})
    server: S3Server = request.getfixturevalue("server")
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    bucket = server.new_bucket()
    return lambda job: open_store(f"s3://{bucket}/{job}", server.env)


@pytest.fixture
def store(opened: Opened) -> CheckpointStore:
    return opened("job")


def test_an_empty_store_has_nothing_and_that_is_no_error(store: CheckpointStore) -> None:
    assert store.checkpoints() == []
    assert store.sizes("step-00000001") == {}
    assert store.read("status.json") is None
    store.remove("step-00000001")


def test_a_small_file_is_replaced_whole(store: CheckpointStore) -> None:
    store.write("status.json", b"a longer text")
    store.write("status.json", b"short")
    assert store.read("status.json") == b"short"
    assert store.checkpoints() == []


def test_checkpoints_are_those_of_this_job_alone(opened: Opened) -> None:
    opened("job").write("step-00000001/manifest.json", b"{}")
    opened("job").write("step-00000002/part", b"12345")
    opened("job").write("notes/step-00000003/part", b"")
    opened("job-2").write("step-00000004/part", b"")
    assert sorted(opened("job").checkpoints()) == ["step-00000001", "step-00000002"]
    assert opened("job").sizes("step-00000002") == {"part": 5}


def test_what_is_removed_is_gone_and_nothing_else(store: CheckpointStore) -> None:
    for name in ("step-00000001/manifest.json", "step-00000001/part", "step-00000010/part", "status.json"):
        store.write(name, b"1")
    store.remove("step-00000001")
    assert store.checkpoints() == ["step-00000010"]
    assert store.sizes("step-00000001") == {}
    assert store.read("status.json") == b"1"


@pytest.mark.parametrize("asynchronous", [True, False])
def test_weights_and_moments_come_back(opened: Opened, *, asynchronous: bool) -> None:
    saved = Learner(opened("job"), asynchronous=asynchronous)
    saved.load()
    saved.learn(2)
    saved.save()
    saved.learn(1)
    saved.save()
    saved.checkpointer.wait()
    assert sorted(opened("job").sizes("step-00000003")) == [
        ".metadata", "__0_0.distcp", "manifest.json", "metadata"
    ]  # fmt: skip
    fresh = Learner(opened("job"))
    assert fresh.load() == 3
    assert fresh.sha256() == saved.sha256()


def test_an_error_of_another_kind_is_not_the_stores(store: CheckpointStore) -> None:
    assert store.explained(ValueError("of the program")) is None
