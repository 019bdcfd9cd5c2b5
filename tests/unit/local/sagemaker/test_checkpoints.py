"""The folder of checkpoints and its place in S3 are kept alike."""

import os
from pathlib import Path

import pytest

from local.sagemaker.checkpoints import CheckpointMirror, _State
from local.sagemaker.s3_uri import S3Location
from tests.integration.local.sagemaker_world import BUCKET, Buckets

LOCATION = S3Location(bucket=BUCKET, key="ckpt/job")


@pytest.fixture
def store() -> Buckets:
    return Buckets(BUCKET)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def mirror(folder: Path, store: Buckets) -> CheckpointMirror:
    return CheckpointMirror(folder, LOCATION, store)


def put(path: Path, text: str, *, changed_at: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (changed_at, changed_at))


def stored(store: Buckets) -> dict[str, str]:
    return {key: body.decode() for key, body in store.objects[BUCKET].items()}


def test_what_is_in_s3_comes_down_before_the_start_and_does_not_go_up_again(mirror, folder, store):
    store.write(BUCKET, "ckpt/job/step-1/weights", b"w")
    store.write(BUCKET, "ckpt/job/step-1/", b"")
    store.write(BUCKET, "ckpt/job-2/weights", b"of another job")
    store.history.clear()

    mirror.restore()
    mirror.finish()

    files = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    assert files == {"step-1/weights": b"w"}
    assert store.history == []


def restored(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("key", ["ckpt/job", "ckpt/job/"])
def test_O13_what_another_job_saved_below_the_location_comes_down_too(folder, store, key):
    store.write(BUCKET, "ckpt/job/weights", b"mine")
    store.write(BUCKET, "ckpt/job/other/weights", b"theirs")
    CheckpointMirror(folder, S3Location(bucket=BUCKET, key=key), store).restore()
    assert restored(folder) == {"weights": b"mine", "other/weights": b"theirs"}


@pytest.mark.parametrize(
    ("key", "files"),
    [
        ("ckpt/job", {"weights": b"mine", "job-2/weights": b"theirs", "jobs": b"a file"}),
        ("ckpt/job/", {"weights": b"mine"}),
    ],
)
def test_O13_by_prefix_as_s3_has_it_a_is_the_beginning_of_ab(folder, store, key, files):
    store.write(BUCKET, "ckpt/job/weights", b"mine")
    store.write(BUCKET, "ckpt/job-2/weights", b"theirs")
    store.write(BUCKET, "ckpt/jobs", b"a file")
    store.history.clear()
    mirror = CheckpointMirror(folder, S3Location(bucket=BUCKET, key=key), store, by_prefix=True)
    mirror.restore()
    mirror.finish()
    assert restored(folder) == files
    assert store.history == []  # nothing of it goes up again


def test_a_file_goes_up_when_two_looks_found_it_the_same(mirror, folder, store):
    put(folder / "a", "1", changed_at=1)
    mirror.sync()
    assert stored(store) == {}

    mirror.sync()
    assert stored(store) == {"ckpt/job/a": "1"}


def test_a_file_that_still_grows_waits(mirror, folder, store):
    for look in range(3):
        put(folder / "a", "x" * (look + 1), changed_at=look)
        mirror.sync()

    assert stored(store) == {}


def test_a_file_renamed_over_another_goes_up_though_size_and_time_are_the_same(mirror, folder, store):
    put(folder / "latest", "1", changed_at=1)
    mirror.sync()
    mirror.sync()
    put(folder / "latest.tmp", "2", changed_at=1)
    (folder / "latest.tmp").rename(folder / "latest")
    mirror.sync()
    mirror.sync()

    assert stored(store) == {"ckpt/job/latest": "2"}


def test_files_go_up_in_the_order_of_their_last_change(mirror, folder, store):
    put(folder / "a-latest", "step-2", changed_at=3)
    put(folder / "step-2" / "weights", "w", changed_at=2)
    put(folder / "step-1" / "weights", "w", changed_at=1)
    mirror.sync()
    mirror.sync()

    assert [key for _, key in store.history] == [
        "ckpt/job/step-1/weights",
        "ckpt/job/step-2/weights",
        "ckpt/job/a-latest",
    ]


def test_what_is_deleted_here_is_deleted_in_s3_but_nothing_else(mirror, folder, store):
    store.write(BUCKET, "ckpt/job/old", b"o")
    mirror.restore()
    store.write(BUCKET, "ckpt/job/put-by-others", b"p")
    put(folder / "new", "n", changed_at=1)
    mirror.sync()
    mirror.sync()
    (folder / "old").unlink()
    (folder / "new").unlink()
    mirror.sync()

    assert stored(store) == {"ckpt/job/put-by-others": "p"}


def test_at_the_end_everything_goes_up_at_once(mirror, folder, store):
    put(folder / "a", "1", changed_at=1)
    mirror.finish()

    assert stored(store) == {"ckpt/job/a": "1"}


def test_a_file_that_changed_while_it_was_read_waits(mirror, folder, store):
    put(folder / "a", "1", changed_at=1)
    before = _State.of(folder / "a")
    put(folder / "a", "22", changed_at=2)
    mirror._upload(folder / "a", before)

    assert stored(store) == {}


def test_a_file_that_is_gone_before_it_is_read_is_no_error(mirror, folder, store):
    put(folder / "a", "1", changed_at=1)
    before = _State.of(folder / "a")
    (folder / "a").unlink()
    mirror._upload(folder / "a", before)

    assert stored(store) == {}


def test_an_unchanged_file_goes_up_once(mirror, folder, store):
    put(folder / "a", "1", changed_at=1)
    for _ in range(4):
        mirror.sync()
    mirror.finish()

    assert store.history == [("write", "ckpt/job/a")]
