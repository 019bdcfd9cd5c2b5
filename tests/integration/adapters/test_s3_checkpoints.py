"""When the newest checkpoint of a job was written, read from S3."""

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from trainmaster.adapters.s3_checkpoints import S3Checkpoints
from trainmaster.core.errors import UnavailableError
from trainmaster.core.jobs.observations import Newest

BUCKET = "checkpoints"


def at(hour: int) -> datetime:
    return datetime(2026, 11, 2, hour, tzinfo=UTC)


@pytest.fixture
def s3(aws: None) -> Any:
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    return client


def written(client: Any, key: str, hour: int, body: bytes = b"x") -> None:
    client.put_object(Bucket=BUCKET, Key=key, Body=body)
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET].keys[key].last_modified = at(hour).replace(
        tzinfo=None
    )


def test_the_status_file_says_when_the_newest_checkpoint_was_written(s3: Any) -> None:
    """Its own age is that of the end of an attempt, which may have saved nothing."""
    written(s3, "job/step-100/model", 9)
    written(s3, "job/status.json", 11, b'{"checkpoint_at": "2026-11-02T10:00:00+02:00"}')
    assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job/") == Newest(written_at=at(8))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"step": 100}', id="a program that does not say when"),
        pytest.param(b"{", id="half a file"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[1]", id="no object"),
        pytest.param(b"7", id="a number"),
        pytest.param(b"[" * 60_000, id="far too deep"),
        pytest.param(b'{"checkpoint_at": 7}', id="no text for an instant"),
        pytest.param(b'{"checkpoint_at": "yesterday"}', id="no instant"),
        pytest.param(b'{"checkpoint_at": "2026-11-02T07:00:00"}', id="an instant of no time zone"),
        pytest.param(b'{"checkpoint_at": "2027-01-01T00:00:00Z"}', id="an instant after the file itself"),
        pytest.param(b'{"a": "' + b"x" * 70_000 + b'", "checkpoint_at": null}', id="far too long"),
    ],
)
def test_of_another_status_file_the_age_counts(s3: Any, body: bytes) -> None:
    written(s3, "job/step-100/model", 9)
    written(s3, "job/status.json", 8, body)
    assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job/") == Newest(written_at=at(8))


def test_a_status_without_a_checkpoint_is_none_itself(s3: Any) -> None:
    """As of an attempt that was stopped before its first one, or of a program with files of its own."""
    written(s3, "job/status.json", 8, b'{"checkpoint_at": null}')
    assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job/") == Newest()
    written(s3, "job/own-100/model", 7)
    assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job/") == Newest(written_at=at(7))


def test_without_a_status_file_the_newest_object_does(s3: Any) -> None:
    written(s3, "job/step-100/model", 9)
    written(s3, "job/step-200/model", 11)
    written(s3, "job/step-150/model", 10)
    assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job") == Newest(written_at=at(11))


def test_checkpoints_of_a_namesake_do_not_count(s3: Any) -> None:
    written(s3, "job-2/status.json", 9)
    assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job") == Newest()


def test_checkpoints_may_lie_at_the_root_of_a_bucket(s3: Any) -> None:
    written(s3, "status.json", 9)
    assert S3Checkpoints(s3).newest(f"s3://{BUCKET}") == Newest(written_at=at(9))


def test_a_job_that_has_not_saved_yet_has_none(s3: Any) -> None:
    assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job") == Newest(written_at=None, is_certain=True)


UNREADABLE = Newest(is_certain=False, is_readable=False)


def test_a_bucket_that_is_not_there_tells_nothing(s3: Any) -> None:
    assert S3Checkpoints(s3).newest("s3://somebody-elses/job") == UNREADABLE


@pytest.mark.parametrize("code", ["AccessDenied", "KMS.DisabledException", "KMS.NotFoundException"])
def test_a_status_file_that_cannot_be_decrypted_leaves_the_listing_as_a_lower_bound(
    s3: Any, code: str
) -> None:
    written(s3, "job/step-100/model", 9)
    page = s3.list_objects_v2(Bucket=BUCKET, Prefix="job/")
    with Stubber(s3) as stub:
        stub.add_client_error("get_object", service_error_code=code, http_status_code=403)
        stub.add_response("list_objects_v2", {"Contents": page["Contents"]})
        assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job") == Newest(written_at=at(9), is_certain=False)


def test_a_bucket_that_may_not_be_read_tells_nothing(s3: Any) -> None:
    with Stubber(s3) as stub:
        stub.add_client_error("get_object", service_error_code="AccessDenied", http_status_code=403)
        stub.add_client_error("list_objects_v2", service_error_code="AccessDenied", http_status_code=403)
        assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job") == UNREADABLE


def test_a_listing_that_goes_on_may_hide_a_newer_one(s3: Any) -> None:
    with Stubber(s3) as stub:
        stub.add_client_error("get_object", service_error_code="NoSuchKey", http_status_code=404)
        page = {"Contents": [{"Key": "job/a", "LastModified": at(9)}], "IsTruncated": True}
        stub.add_response("list_objects_v2", page)
        assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job") == Newest(written_at=at(9), is_certain=False)


def test_an_outage_is_not_mistaken_for_no_checkpoint(s3: Any) -> None:
    with Stubber(s3) as stub:
        stub.add_client_error("get_object", service_error_code="SlowDown", http_status_code=503)
        with pytest.raises(UnavailableError, match="S3 refused: SlowDown"):
            S3Checkpoints(s3).newest(f"s3://{BUCKET}/job")
