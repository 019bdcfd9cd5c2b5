"""What S3 refused, and the words for it. No AWS package here: an error may be read where none is."""

from dataclasses import dataclass

DENIED = frozenset({"AccessDenied", "Forbidden", "403"})
_BUSY = frozenset({"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "503", "500"})
_KEYS = frozenset({"ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"})
_NO_BUCKET = "NoSuchBucket"
_SHOWN = 200
"""Characters of S3's own words."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the checkpoints of a job are."""

    bucket: str
    prefix: str
    """Without slashes around it; empty for the whole bucket."""

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def key(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix else name


class S3RequestError(Exception):
    """A request that failed for good.

    Args:
        place: Of the store.
        action: The IAM action, e.g. ``s3:PutObject``.
        key: What it was about; empty for the bucket.
        code: S3's; empty when it has none to offer, as the same request works now.
        text: What the client said.
    """

    def __init__(self, place: Place, action: str, key: str, code: str, text: str) -> None:
        super().__init__(place, action, key, code, text)  # positional, so that it can be pickled
        self.place, self.action, self.key, self.code, self.text = place, action, key, code, text


def explained(error: S3RequestError) -> str:
    """What is wrong, and what to do."""
    place = error.place
    what = f"{error.action} on s3://{place.bucket}/{error.key}".rstrip("/")
    if error.code in DENIED:
        return f"{what} was denied: {_rights(place)}; also on the bucket's KMS key, if it has one"
    if error.code == _NO_BUCKET:
        return f"bucket {place.bucket} of {place.uri} does not exist: correct the name, or create it"
    if error.code in _BUSY or error.code == "":
        return (
            f"{what} failed again and again ({error.code or error.text[:_SHOWN]}): that is S3 or the way "
            "to it; start the job again, it resumes from the newest checkpoint"
        )
    if error.code in _KEYS:
        return f"{what} failed: the credentials are not accepted ({error.code}); renew them"
    return f"{what} failed: {error.code}: {error.text[:_SHOWN]}"


def _rights(place: Place) -> str:
    """See the guide for the whole statement."""
    folder = f"{place.bucket}/{place.prefix}".rstrip("/")
    return (
        f"the job's role needs s3:ListBucket on arn:aws:s3:::{place.bucket} and s3:GetObject, s3:PutObject, "
        f"s3:DeleteObject, s3:AbortMultipartUpload on arn:aws:s3:::{folder}/*"
    )
