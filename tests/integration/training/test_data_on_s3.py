"""A corpus in S3, and what S3 may answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.integration.training.buckets import CREDENTIALS, Fault, S3Server, s3_server
from tests.unit.training.data.corpora import spoil, written
from training.config import TrainConfig, read_config
from training.data.batches import Batches, prefetched
from training.data.corpus import Corpus, open_corpus
from training.data.s3 import S3Place, s3_client
from training.data.token_shards import open_shards
from training.errors import ConfigError, DataError

PREFIX = "corpora/one"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with s3_server() as served:
        for name, value in served.env.items():
            monkeypatch.setenv(name, value)
        yield served


@pytest.fixture
def bucket(server: S3Server, tmp_path: Path) -> str:
    """One with 10 shards of 100 tokens; the same lie in ``tmp_path``."""
    written(tmp_path, [number % 256 for number in range(1000)])
    name = server.new_bucket()
    _upload(server, name, tmp_path)
    return name


def _upload(server: S3Server, bucket: str, directory: Path) -> None:
    for path in directory.iterdir():
        server.client().put_object(Bucket=bucket, Key=f"{PREFIX}/{path.name}", Body=path.read_bytes())


def _config(data: str | Path) -> TrainConfig:
    arguments = ["--data", str(data), "--sequence-length", "10", "--batch-size", "4", "--seed", "3"]
    return read_config(arguments, {})


def _batches(corpus: Corpus) -> Batches:
    return Batches(corpus=corpus, sequence_length=10, size=4, rank=0, ranks=1, seed=3)


def _refused_at_once(bucket: str) -> str:
    """What opening it says, without retries that wait."""
    place = S3Place(s3_client(attempts=1), bucket=bucket, prefix=PREFIX)
    with pytest.raises(DataError) as caught:
        open_shards(place, _config(f"s3://{bucket}/{PREFIX}"), at_least=1)
    assert len(str(caught.value)) <= 1024
    return str(caught.value)


def test_T15_batches_from_s3_are_those_from_disk_and_each_block_is_fetched_once(
    server: S3Server, bucket: str, tmp_path: Path
) -> None:
    local = _batches(open_corpus(_config(tmp_path), env={}))
    remote = _batches(open_corpus(_config(f"s3://{bucket}/{PREFIX}/"), env={}))
    server.served.clear()
    with prefetched(remote, depth=2, steps=range(1, 24), pin=None) as ahead:
        for step in range(1, 24):
            assert torch.equal(torch.stack(ahead.at(step)), torch.stack(local.at(step)))
    gets = [path for method, path in server.served if method == "GET"]
    assert len(gets) == 30  # of each shard the 3 blocks that have sequences, none of them twice
    assert set(gets) == {f"/{bucket}/{PREFIX}/shard-{number:05d}.bin" for number in range(10)}


def test_T15_a_5xx_in_the_middle_of_training_is_retried_and_changes_nothing(
    server: S3Server, bucket: str, tmp_path: Path
) -> None:
    local = _batches(open_corpus(_config(tmp_path), env={}))
    place = S3Place(s3_client(attempts=3), bucket=bucket, prefix=PREFIX)
    remote = _batches(open_shards(place, _config(f"s3://{bucket}/{PREFIX}"), at_least=1))
    fault = Fault(method="GET", key_has="shard-", code="SlowDown", status=503, times=2)
    server.faults.append(fault)
    for step in (1, 2, 3):
        assert torch.equal(torch.stack(remote.at(step)), torch.stack(local.at(step)))
    assert fault.times == 0


def test_T15_a_5xx_that_stays_is_told_by_the_step_that_needs_the_block(server: S3Server, bucket: str) -> None:
    place = S3Place(s3_client(attempts=1), bucket=bucket, prefix=PREFIX)
    remote = _batches(open_shards(place, _config(f"s3://{bucket}/{PREFIX}"), at_least=1))
    server.faults.append(Fault(method="GET", key_has="shard-", code="InternalError", status=500))
    with (
        prefetched(remote, depth=2, steps=range(1, 24), pin=None) as ahead,
        pytest.raises(
            DataError, match="S3 answers InternalError, after retries; start the job again"
        ) as caught,
    ):
        ahead.at(1)
    assert f"data s3://{bucket}/{PREFIX}/shard-" in str(caught.value)


def test_T15_denied_access_names_the_action_and_the_rights(server: S3Server, bucket: str) -> None:
    server.faults.append(Fault(method="GET", key_has="index.json", code="AccessDenied", status=403))
    assert _refused_at_once(bucket) == (
        f"data s3://{bucket}/{PREFIX}/index.json: AccessDenied on s3:GetObject; the job's role needs "
        f"s3:ListBucket on arn:aws:s3:::{bucket} and s3:GetObject on arn:aws:s3:::{bucket}/{PREFIX}/*, "
        "and kms:Decrypt where a KMS key of yours encrypts it"
    )
    server.faults[:] = [Fault(method="GET", key_has=bucket, code="AccessDenied", status=403)]
    assert "AccessDenied on s3:ListBucket" in _refused_at_once(bucket)


def test_a_bucket_or_prefix_that_is_not_there_is_told(server: S3Server, bucket: str) -> None:
    assert "data s3://no-such-bucket/corpora/one/: NoSuchBucket: it is not there" in _refused_at_once(
        "no-such-bucket"
    )
    for key in server.keys(bucket):
        server.client().delete_object(Bucket=bucket, Key=key)
    assert (
        f"data s3://{bucket}/{PREFIX}/: there is no index.json; upload the whole folder"
        in _refused_at_once(bucket)
    )


def test_missing_truncated_and_damaged_shards_are_told_as_on_disk(
    server: S3Server, bucket: str, tmp_path: Path
) -> None:
    key = f"{PREFIX}/shard-00003.bin"
    server.client().delete_object(Bucket=bucket, Key=key)
    assert "1 of 10 shards are missing: shard-00003.bin" in _refused_at_once(bucket)
    server.client().put_object(Bucket=bucket, Key=key, Body=b"\0" * 150)
    assert "shard-00003.bin has 150 bytes of 200" in _refused_at_once(bucket)
    spoil(tmp_path / "shard-00003.bin", 130)
    _upload(server, bucket, tmp_path)
    corpus = open_corpus(_config(f"s3://{bucket}/{PREFIX}"), env={})
    with pytest.raises(DataError, match=r"shard-00003.bin is damaged at byte 128"):
        corpus.rows(range(27, 36), 11)


def test_a_shard_that_goes_away_during_training_is_told(server: S3Server, bucket: str) -> None:
    corpus = open_corpus(_config(f"s3://{bucket}/{PREFIX}"), env={})
    server.client().delete_object(Bucket=bucket, Key=f"{PREFIX}/shard-00000.bin")
    with pytest.raises(DataError, match=r"shard-00000.bin: NoSuchKey: it is not there"):
        corpus.rows([0], 11)


def test_nobody_at_the_endpoint_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}.items():
        monkeypatch.setenv(name, value)
    assert "data s3://bucket/corpora/one/: EndpointConnectionError" in _refused_at_once("bucket")


def test_an_address_without_a_bucket_is_refused() -> None:
    with pytest.raises(ConfigError, match="data must be s3://BUCKET/PREFIX, not 's3:///x'"):
        open_corpus(_config("s3:///x"), env={})


def test_without_boto3_the_message_says_what_to_add(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.data.corpus.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"needs boto3: add it to requirements.txt beside train.py"):
        open_corpus(_config("s3://bucket/x"), env={})
