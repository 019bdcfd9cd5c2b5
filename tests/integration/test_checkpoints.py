"""When the newest checkpoint of a job was written, read from S3."""

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from trainmaster.adapters.checkpoints import S3Checkpoints
from trainmaster.errors import UnavailableError
from trainmaster.ports import Newest

BUCKET = "checkpoints"


def at(hour: int) -> datetime:
    return datetime(2026, 11, 2, hour, tzinfo=UTC)


@pytest.fixture
def s3(aws: None) -> Any:
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    return client


def written(client: Any, key: str, hour: int) -> None:
    client.put_object(Bucket=BUCKET, Key=key, Body=b"x")
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET].keys[key].last_modified = at(hour).replace(
        tzinfo=None
    )


def test_the_status_file_tells_the_age_of_the_progress(s3: Any) -> None:
    written(s3, "job/step-100/model", 9)
    written(s3, "job/status.json", 8)
    assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job/") == Newest(written_at=at(8))


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


def test_a_bucket_that_is_not_there_tells_nothing(s3: Any) -> None:
    assert S3Checkpoints(s3).newest("s3://somebody-elses/job") == Newest(is_certain=False)


def test_a_bucket_that_may_not_be_read_tells_nothing(s3: Any) -> None:
    with Stubber(s3) as stub:
        stub.add_client_error("head_object", service_error_code="403", http_status_code=403)
        assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job") == Newest(is_certain=False)


def test_a_listing_that_goes_on_may_hide_a_newer_one(s3: Any) -> None:
    with Stubber(s3) as stub:
        stub.add_client_error("head_object", service_error_code="404", http_status_code=404)
        page = {"Contents": [{"Key": "job/a", "LastModified": at(9)}], "IsTruncated": True}
        stub.add_response("list_objects_v2", page)
        assert S3Checkpoints(s3).newest(f"s3://{BUCKET}/job") == Newest(written_at=at(9), is_certain=False)


def test_an_outage_is_not_mistaken_for_no_checkpoint(s3: Any) -> None:
    with Stubber(s3) as stub:
        stub.add_client_error("head_object", service_error_code="SlowDown", http_status_code=503)
        with pytest.raises(UnavailableError, match="S3 refused: SlowDown"):
            S3Checkpoints(s3).newest(f"s3://{BUCKET}/job")
