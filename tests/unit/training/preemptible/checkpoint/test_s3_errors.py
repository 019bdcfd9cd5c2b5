import pickle

import pytest

from training.preemptible.checkpoint.s3_shards import Place, S3RequestError, explained

_PLACE = Place("bucket", "team/job")


def _error(code: str, *, text: str = "so it was told", action: str = "s3:PutObject") -> S3RequestError:
    return S3RequestError(_PLACE, action, "team/job/step-00000002/__0_0.distcp", code, text)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("AccessDenied", "was denied: the job's role needs s3:ListBucket on arn:aws:s3:::bucket and "),
        ("403", "was denied: "),
        ("NoSuchBucket", "bucket bucket of s3://bucket/team/job does not exist: correct the name"),
        ("SlowDown", "failed again and again (SlowDown): that is S3 or the way to it; start the job again"),
        ("", "failed again and again (so it was told): "),
        ("ExpiredToken", "failed: the credentials are not accepted (ExpiredToken); renew them"),
        ("EntityTooLarge", "__0_0.distcp failed: EntityTooLarge: so it was told"),
    ],
)
def test_each_kind_of_refusal_says_what_to_do(code: str, told: str) -> None:
    assert told in explained(_error(code))


def test_action_and_object_are_named() -> None:
    assert explained(_error("InvalidRequest")).startswith(
        "s3:PutObject on s3://bucket/team/job/step-00000002/__0_0.distcp failed"
    )


def test_s3_may_say_much_and_the_failure_file_takes_1024_characters() -> None:
    assert len(explained(_error("Odd", text="x" * 5000))) < 400
    assert len(explained(_error("", text="x" * 5000))) < 500


def test_it_survives_the_way_to_another_rank() -> None:
    error = pickle.loads(pickle.dumps(_error("SlowDown")))
    assert explained(error) == explained(_error("SlowDown"))


def test_a_bucket_without_a_prefix_has_its_own_rights_named() -> None:
    error = S3RequestError(Place("bucket", ""), "s3:ListBucket", "", "AccessDenied", "")
    assert "s3:ListBucket on s3://bucket was denied" in explained(error)
    assert "arn:aws:s3:::bucket/*" in explained(error)
