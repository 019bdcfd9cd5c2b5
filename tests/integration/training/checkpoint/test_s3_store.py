"""Checkpoints straight to S3, and what goes wrong there."""

import json
import os
import signal
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
from botocore.exceptions import ClientError

from tests.integration.training.buckets import CREDENTIALS, RESET, Fault, S3Server, s3_server
from tests.integration.training.checkpoint.learner import Learner
from tests.integration.training.worlds import RankFailedError, in_world
from training.preemptible import CheckpointReadError, CheckpointSaveError
from training.preemptible.checkpoint import CheckpointStore, open_store, s3_shards
from training.preemptible.checkpoint.s3_shards import Place, released
from training.preemptible.checkpoint.s3_store import S3Store
from training.ranks.world import World


@pytest.fixture(scope="module")
def shared_server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def server(shared_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    shared_server.faults.clear()
    shared_server.served.clear()
    return shared_server


@pytest.fixture
def bucket(server: S3Server) -> str:
    return server.new_bucket()


def _store(server: S3Server, bucket: str, *, attempts: int = 3) -> S3Store:
    return S3Store(Place(bucket, "team/job"), endpoint=server.url, attempts=attempts)


def _learner(store: CheckpointStore, **options: Any) -> Learner:
    learner = Learner(store, **options)
    learner.load()
    return learner


def _saved(store: CheckpointStore, *steps: int) -> Learner:
    learner = _learner(store)
    for step in steps:
        learner.learn(step - learner.step)
        learner.save()
    learner.checkpointer.wait()
    return learner


def _rank_saves(world: World, location: str, env: dict[str, str]) -> str:
    os.environ.update(env)
    learner = Learner(open_store(location, env))
    learner.load()
    learner.learn(3)
    learner.save()
    learner.checkpointer.wait()
    return learner.sha256()


def test_T15_two_ranks_save_to_s3_and_one_goes_on(server: S3Server, bucket: str) -> None:
    location = f"s3://{bucket}/team/job/"
    saved, _ = in_world(2, _rank_saves, location, server.env)
    fresh = Learner(open_store(location, server.env))
    assert fresh.load() == 3
    assert fresh.sha256() == saved
    assert server.keys(bucket) == [
        "team/job/status.json",
        "team/job/step-00000003/.metadata",
        "team/job/step-00000003/__0_0.distcp",
        "team/job/step-00000003/__1_0.distcp",
        "team/job/step-00000003/manifest.json",
        "team/job/step-00000003/metadata",
    ]


def test_the_folder_that_sagemaker_mirrors_has_the_status_and_nothing_else(
    server: S3Server, bucket: str, tmp_path: Path
) -> None:
    mirrored = tmp_path / "checkpoints"
    location = f"s3://{bucket}/team/job"
    learner = Learner(open_store(location, server.env | {"SM_CHECKPOINT_DIR": str(mirrored)}))
    learner.load()
    learner.learn(2)
    learner.save()
    learner.checkpointer.wait()
    learner.checkpointer.end("preempted", step=2)
    assert [path.name for path in mirrored.iterdir()] == ["status.json"]
    status = json.loads((mirrored / "status.json").read_bytes())
    assert (status["state"], status["checkpoint"]) == ("preempted", "step-00000002")
    stored = server.client().get_object(Bucket=bucket, Key="team/job/status.json")["Body"].read()
    assert json.loads(stored) == status


def test_a_status_that_cannot_be_mirrored_does_not_fail_the_save(
    server: S3Server, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    env = server.env | {"SM_CHECKPOINT_DIR": str(tmp_path / "file")}
    store = open_store(f"s3://{bucket}/team/job", env)
    store.write("status.json", b"{}")
    assert store.read("status.json") == b"{}"
    assert "status.json is in s3://" in capsys.readouterr().out


def test_the_manifest_is_written_after_all_else_and_removed_before_it(
    server: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _saved(_store(server, bucket), 1)
    written = [path for method, path in server.served if method in {"PUT", "POST"}]
    of_checkpoint = [path for path in written if "step-00000001/" in path]
    assert of_checkpoint[-1] == f"/{bucket}/team/job/step-00000001/manifest.json"
    store = _store(server, bucket)
    removed: list[list[str]] = []
    monkeypatch.setattr(store, "_delete", removed.append)
    store.remove("step-00000001")
    folder = "team/job/step-00000001"
    assert removed == [
        [f"{folder}/manifest.json"],
        [f"{folder}/.metadata", f"{folder}/__0_0.distcp", f"{folder}/metadata"],
    ]


def test_T15_errors_of_s3_that_pass_are_not_noticed(server: S3Server, bucket: str) -> None:
    server.faults += [
        Fault(method="PUT", key_has="__0_0.distcp", code="SlowDown", status=503, times=2),
        Fault(method="PUT", key_has="manifest.json", code="InternalError", status=500, times=1),
        Fault(method="GET", key_has="__0_0.distcp", code="SlowDown", status=503, times=2),
        Fault(method="GET", key_has="metadata", code="InternalError", status=500, times=1),
    ]
    saved = _saved(_store(server, bucket), 2)
    fresh = Learner(_store(server, bucket))
    assert fresh.load() == 2
    assert fresh.sha256() == saved.sha256()
    assert [one.times for one in server.faults] == [0, 0, 0, 0]


def test_T15_a_save_that_fails_for_good_says_so_and_the_one_before_is_loaded(
    server: S3Server, bucket: str
) -> None:
    learner = _saved(_store(server, bucket, attempts=1), 2)
    before = learner.sha256()
    server.faults.append(Fault(method="PUT", key_has="__0_0.distcp", code="InternalError", status=500))
    learner.learn(1)
    learner.save()
    with pytest.raises(CheckpointSaveError) as failed:
        learner.checkpointer.wait()
    assert str(failed.value) == (
        "checkpoint step-00000003 could not be saved: rank 0: s3:PutObject on "
        f"s3://{bucket}/team/job/step-00000003/__0_0.distcp failed again and again (InternalError): that is "
        "S3 or the way to it; start the job again, it resumes from the newest checkpoint; "
        "the newest whole one is step-00000002"
    )
    server.faults.clear()
    assert _store(server, bucket).checkpoints() == ["step-00000002"]
    resumed = Learner(_store(server, bucket))
    assert resumed.load() == 2
    assert resumed.sha256() == before


def test_a_checkpoint_that_cannot_be_read_now_is_not_passed_over(server: S3Server, bucket: str) -> None:
    _saved(_store(server, bucket), 1, 2)
    server.faults.append(Fault(method="GET", key_has="__0_0.distcp", code="SlowDown", status=503))
    server.faults.append(Fault(method="HEAD", key_has="__0_0.distcp", code="SlowDown", status=503))
    with pytest.raises(CheckpointReadError, match="step-00000002 could not be read: rank 0: s3:GetObject on"):
        Learner(_store(server, bucket, attempts=1)).load()


@pytest.mark.parametrize(
    "what",
    [pytest.param("__0_0.distcp", id="a shard"), pytest.param("manifest.json", id="the manifest")],
)
def test_T15_a_denied_write_names_action_bucket_and_prefix(server: S3Server, bucket: str, what: str) -> None:
    server.faults.append(Fault(method="PUT", key_has=what, code="AccessDenied", status=403))
    learner = _learner(_store(server, bucket), asynchronous=False)
    with pytest.raises(CheckpointSaveError) as failed:
        learner.save()
    assert str(failed.value) == (
        "checkpoint step-00000000 could not be saved: rank 0: s3:PutObject on "
        f"s3://{bucket}/team/job/step-00000000/{what} was denied: the job's role needs s3:ListBucket on "
        f"arn:aws:s3:::{bucket} and s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload on "
        f"arn:aws:s3:::{bucket}/team/job/*; also on the bucket's KMS key, if it has one"
    )
    assert len(str(failed.value)) < 1024


def test_a_denied_list_is_told_before_anything_is_trained(server: S3Server, bucket: str) -> None:
    server.faults.append(Fault(method="GET", key_has=f"/{bucket}", code="AccessDenied", status=403))
    with pytest.raises(CheckpointReadError, match=rf"s3:ListBucket on s3://{bucket}/team/job was denied"):
        Learner(_store(server, bucket)).load()


def test_a_denied_delete_of_one_of_many_is_an_error(server: S3Server, bucket: str, monkeypatch) -> None:
    store = _store(server, bucket)
    store.write("step-00000001/part", b"1")
    answer = {"Errors": [{"Key": "team/job/step-00000001/part", "Code": "AccessDenied"}]}
    monkeypatch.setattr(store._client, "delete_objects", lambda **_: answer)
    with pytest.raises(Exception) as failed:  # noqa: PT011  its words are what counts
        store.remove("step-00000001")
    assert (store.explained(failed.value) or "").startswith(
        f"s3:DeleteObject on s3://{bucket}/team/job/step-00000001/part was denied: "
    )


def test_a_bucket_that_does_not_exist_is_named(server: S3Server) -> None:
    with pytest.raises(CheckpointReadError) as failed:
        Learner(_store(server, "no-such-bucket")).load()
    assert "bucket no-such-bucket of s3://no-such-bucket/team/job does not exist: correct the name" in str(
        failed.value
    )


def test_a_place_that_nobody_serves_is_told(server: S3Server, bucket: str) -> None:
    store = S3Store(Place(bucket, "job"), endpoint="http://127.0.0.1:1", attempts=1)
    with pytest.raises(CheckpointReadError, match=rf"s3://{bucket}/job cannot be reached: Could not connect"):
        Learner(store).load()


def test_a_checkpoint_of_more_files_than_a_page_lists_is_seen_and_removed_whole(
    server: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
    monkeypatch.setattr("training.preemptible.checkpoint.s3_store._DELETED_AT_ONCE", 2)
    store = _store(server, bucket)
    for name in ("a", "b", "c", "d", "manifest.json"):
        store.write(f"step-00000001/{name}", b"1")
    store.write("step-00000002/a", b"1")
    store.write("step-00000003/a", b"1")
    assert sorted(store.sizes("step-00000001")) == ["a", "b", "c", "d", "manifest.json"]
    assert sorted(store.checkpoints()) == ["step-00000001", "step-00000002", "step-00000003"]
    store.remove("step-00000001")
    assert sorted(store.checkpoints()) == ["step-00000002", "step-00000003"]


def test_a_bucket_without_a_prefix_is_a_store_too(server: S3Server, bucket: str) -> None:
    store = open_store(f"s3://{bucket}", server.env)
    store.write("step-00000001/part", b"1")
    assert store.location == f"s3://{bucket}"
    assert store.checkpoints() == ["step-00000001"]
    assert store.sizes("step-00000001") == {"part": 1}
    assert server.keys(bucket) == ["step-00000001/part"]


def test_a_client_that_was_released_at_exit_holds_no_threads_and_serves_on(
    server: S3Server, bucket: str
) -> None:
    store = _store(server, bucket)
    _saved(store, 1)
    released(weakref.ref(store._connection.client))
    assert store._connection.client._native_client is None
    assert Learner(store).load() == 1


def test_directories_stay_directories(tmp_path: Path) -> None:
    assert open_store(str(tmp_path), {}).is_shared is False


def _uploads(server: S3Server, bucket: str) -> list[str]:
    return [one["Key"] for one in server.client().list_multipart_uploads(Bucket=bucket).get("Uploads", [])]


def test_M6_a_connection_that_is_reset_in_a_part_is_retried(server: S3Server, bucket: str) -> None:
    server.faults.append(Fault(method="PUT", key_has="__0_0.distcp", code="", status=RESET, times=2))
    saved = _saved(_store(server, bucket), 2)
    assert server.faults[0].times == 0
    fresh = Learner(_store(server, bucket))
    assert fresh.load() == 2
    assert fresh.sha256() == saved.sha256()
    assert _uploads(server, bucket) == []


def _die_while_uploading(world: World, location: str, env: dict[str, str]) -> None:
    """The first bytes of the shard are sent, and then nothing more."""
    os.environ.update(env)
    create = s3_shards._Objects.create_stream

    @contextmanager
    def deadly(self: Any, path: str, mode: str) -> Iterator[Any]:
        with create(self, path, mode) as stream:
            if mode == "wb":
                stream.write(b"PK" * 100)
                os.kill(os.getpid(), signal.SIGKILL)
            yield stream

    learner = Learner(open_store(location, env))
    learner.load()
    learner.learn(2)
    with patch.object(s3_shards._Objects, "create_stream", deadly):
        learner.save()
        learner.checkpointer.wait()


def test_M6_killed_in_an_upload_the_one_before_is_used_and_nothing_is_left_open(
    server: S3Server, bucket: str
) -> None:
    location = f"s3://{bucket}/team/job"
    before = _saved(_store(server, bucket), 2).sha256()
    with pytest.raises(RankFailedError):
        in_world(1, _die_while_uploading, location, server.env)
    # Whether its first part has arrived is a matter of time; this one surely has, and another job's too.
    for key in ("team/job/step-00000004/__0_0.distcp", "team/job-2/step-00000004/__0_0.distcp"):
        upload = server.client().create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
        server.client().upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"PK")
    learner = Learner(_store(server, bucket))
    assert learner.load() == 2
    assert learner.sha256() == before
    learner.learn(2)
    learner.save()
    learner.checkpointer.wait()
    assert _uploads(server, bucket) == ["team/job-2/step-00000004/__0_0.distcp"]
    assert Learner(_store(server, bucket)).load() == 4


def test_M6_a_role_that_may_not_list_uploads_is_told_once_and_saves(
    server: S3Server, bucket: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = _store(server, bucket)
    denied = ClientError({"Error": {"Code": "AccessDenied"}}, "ListMultipartUploads")
    monkeypatch.setattr(store._client, "list_multipart_uploads", Mock(side_effect=denied))
    _saved(store, 1, 2)
    assert Learner(_store(server, bucket)).load() == 2
    told = capsys.readouterr().out
    assert (
        told.count("uploads that were never finished are not removed: s3:ListBucketMultipartUploads on") == 1
    )


def test_M1_a_damaged_copy_on_the_host_is_read_again_from_s3(
    server: S3Server, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    location = f"s3://{bucket}/team/job"
    saved = _saved(open_store(location, server.env, cache_dir=str(tmp_path)), 2)
    (copy,) = tmp_path.rglob("__0_0.distcp")
    content = bytearray(copy.read_bytes())
    content[len(content) // 2] ^= 1
    copy.write_bytes(content)
    fresh = Learner(open_store(location, server.env, cache_dir=str(tmp_path)))
    assert fresh.load() == 2
    assert fresh.sha256() == saved.sha256()
    assert "is read again, without the hosts' copies: rank 0: DamagedError" in capsys.readouterr().out


def test_M1_a_spoiled_shard_in_s3_is_passed_over(server: S3Server, bucket: str) -> None:
    before = _saved(_store(server, bucket), 1).sha256()
    learner = Learner(_store(server, bucket))
    learner.load()
    learner.learn(1)
    learner.save()
    learner.checkpointer.wait()
    key = "team/job/step-00000002/__0_0.distcp"
    content = bytearray(server.client().get_object(Bucket=bucket, Key=key)["Body"].read())
    content[len(content) // 3] ^= 128
    server.client().put_object(Bucket=bucket, Key=key, Body=bytes(content))
    fresh = Learner(_store(server, bucket))
    assert fresh.load() == 1
    assert fresh.sha256() == before
