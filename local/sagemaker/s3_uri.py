"""Locations in S3."""

import re
from dataclasses import dataclass
from typing import Self

_URI = re.compile(r"s3://([^/]+)/?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Location:
    bucket: str
    key: str
    """Object key or key prefix, as written."""

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Parse a URI. Raises ``ValueError`` for anything but ``s3://bucket[/key]``."""
        match = _URI.fullmatch(uri)
        if match is None:
            raise ValueError(f"not an S3 URI: {uri}")
        return cls(bucket=match[1], key=match[2])

    @property
    def folder(self) -> str:
        """The key as a folder: keys in it begin with this."""
        return f"{self.key.rstrip('/')}/" if self.key.strip("/") else ""

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    def child(self, *parts: str) -> "S3Location":
        return S3Location(bucket=self.bucket, key=self.folder + "/".join(parts))
