"""S3 URIs as bucket and parts of the key, so that ``team-a`` is not ``team-ab``."""

import re
from dataclasses import dataclass
from typing import Self

_URI = re.compile(r"s3://(?P<bucket>[a-z0-9._:-]{1,255})(?:/(?P<key>[^\r\n]*))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Location:
    bucket: str
    key: str
    """The key as written; S3 takes it literally."""

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    @property
    def parts(self) -> tuple[str, ...]:
        """Split the key at its slashes; empty parts are left out."""
        return tuple(part for part in self.key.split("/") if part)

    @property
    def is_open(self) -> bool:
        """Tell whether the last part may go on: as a key prefix ``team-a`` also begins ``team-ab``."""
        return bool(self.key) and not self.key.endswith("/")

    def holds(self, other: Self) -> bool:
        """Tell whether the other one lies in here.

        It has to lie in here both literally, as S3 reads it, and with ``..`` resolved, as tools read it.
        """
        inside = "".join(f"{part}/" for part in self.parts)
        # S3 takes ``..`` literally and some tools resolve it: the place must be inside by both readings.
        literal, resolved = f"{other.key}/", "".join(f"{part}/" for part in _resolved(other.parts))
        return self.bucket == other.bucket and literal.startswith(inside) and resolved.startswith(inside)


def parse_s3(text: str) -> S3Location | None:
    """Read ``s3://bucket[/key]``.

    None for anything else: other schemes, upper-case buckets, spaces around it.
    """
    match = _URI.fullmatch(text) if text.strip() == text else None
    return None if match is None else S3Location(bucket=match["bucket"], key=match["key"] or "")


def _resolved(parts: tuple[str, ...]) -> tuple[str, ...]:
    resolved: list[str] = []
    for part in parts:
        if part == "..":
            del resolved[-1:]
        elif part != ".":
            resolved.append(part)
    return tuple(resolved)
