"""Images and places in S3 are compared by their parts, never as texts that begin alike."""

import pytest
from trainmaster.core.policy.image_names import Image, parse_image
from trainmaster.core.request.s3_uri import S3Location, parse_s3

ECR = "111122223333.dkr.ecr.us-east-1.amazonaws.com"
DIGEST = "sha256:" + "0f" * 32


@pytest.mark.parametrize(
    ("text", "image"),
    [
        (f"{ECR}/a", Image(registry=ECR, repository="a")),
        (f"{ECR}/a/b:2.8-gpu", Image(registry=ECR, repository="a/b", tag="2.8-gpu")),
        (f"{ECR}/a@{DIGEST}", Image(registry=ECR, repository="a", digest=DIGEST)),
        (f"{ECR}/a:1@{DIGEST}", Image(registry=ECR, repository="a", tag="1", digest=DIGEST)),
        (f"{ECR.upper()}/a", Image(registry=ECR, repository="a")),
        ("host:5000/a:1", Image(registry="host:5000", repository="a", tag="1")),
        ("localhost/a", Image(registry="localhost", repository="a")),
        ("pytorch/pytorch:2.8", Image(registry="", repository="pytorch/pytorch", tag="2.8")),
        ("pytorch", Image(registry="", repository="pytorch")),
    ],
)
def test_an_image_is_taken_apart(text: str, image: Image) -> None:
    assert parse_image(text) == image


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        f"{ECR}/",
        f"{ECR}/A",
        f"{ECR}//a",
        f"{ECR}/../a",
        f"{ECR}/a:",
        f"{ECR}/a@sha256:0f",
        "Foo/bar",
        f"https://{ECR}/a",
        f"user@{ECR}/a",
        f" {ECR}/a",
        f"{ECR}/a ",
        f"{ECR}/a\n",
        f"{ECR}/" + "a" * 255,
    ],
)
def test_what_is_no_image_is_none(text: str) -> None:
    assert parse_image(text) is None


@pytest.mark.parametrize(
    ("rule", "image", "is_allowed"),
    [
        (f"{ECR}/a", f"{ECR}/a", True),
        (f"{ECR}/a", f"{ECR}/a:2.8", True),
        (f"{ECR}/a", f"{ECR}/a@{DIGEST}", True),
        (f"{ECR}/a", f"{ECR}/a/b", False),
        (f"{ECR}/a", f"{ECR}/ab", False),
        (f"{ECR}/a", f"{ECR}.evil.com/a", False),
        (f"{ECR}/a", f"evil.com/{ECR}/a", False),
        (f"{ECR}/a:1", f"{ECR}/a:1", True),
        (f"{ECR}/a:1", f"{ECR}/a:2", False),
        (f"{ECR}/a:1", f"{ECR}/a", False),
        (f"{ECR}/a@{DIGEST}", f"{ECR}/a:1@{DIGEST}", True),
        (f"{ECR}/a@{DIGEST}", f"{ECR}/a:1", False),
    ],
)
def test_registry_and_repository_are_compared_whole(rule: str, image: str, *, is_allowed: bool) -> None:
    one, other = parse_image(rule), parse_image(image)
    assert one is not None
    assert other is not None
    assert one.allows(other) is is_allowed


@pytest.mark.parametrize(
    "text",
    [
        "s3://",
        "s3:///a",
        "s3:/b/a",
        "https://b.s3.amazonaws.com/a",
        "S3://b/a",
        "s3://Bucket/a",
        "s3://b b/a",
        " s3://b/a",
        "s3://b/a ",
        "s3://b/a\n",
        "b/a",
        "",
    ],
)
def test_what_is_no_place_in_s3_is_none(text: str) -> None:
    assert parse_s3(text) is None


@pytest.mark.parametrize(
    ("prefix", "uri", "is_inside"),
    [
        ("s3://b/", "s3://b/a/x", True),
        ("s3://b", "s3://b", True),
        ("s3://b/", "s3://bb/a", False),
        ("s3://b/team-a/", "s3://b/team-a/x/y", True),
        ("s3://b/team-a", "s3://b/team-a/x", True),
        ("s3://b/team-a/", "s3://b/team-a", True),
        ("s3://b/team-a/", "s3://b/team-ab/x", False),
        ("s3://b/team-a/", "s3://b/team-a//x", True),
        ("s3://b/team-a/", "s3://b//team-a/x", False),
        ("s3://b/team-a/", "s3://b/team-a/../team-b/x", False),
        ("s3://b/team-b/", "s3://b/team-a/../team-b/x", False),
        ("s3://b/team-a/", "s3://b/team-a/x/../y", True),
        ("s3://b/team-a/", "s3://b/./team-a/x", False),
        ("s3://b/team-a/", "s3://b/../../team-a/x", False),
        ("s3://b/", "s3://b/team-a/../../c", True),
        ("s3://b/a b/", "s3://b/a b/x", True),
    ],
)
def test_a_place_holds_what_lies_below_it_both_literally_and_resolved(
    prefix: str, uri: str, *, is_inside: bool
) -> None:
    one, other = parse_s3(prefix), parse_s3(uri)
    assert one is not None
    assert other is not None
    assert one.holds(other) is is_inside


def test_a_place_is_open_when_its_last_part_may_go_on() -> None:
    assert not S3Location(bucket="b", key="").is_open
    assert not S3Location(bucket="b", key="a/").is_open
    assert S3Location(bucket="b", key="a").is_open
