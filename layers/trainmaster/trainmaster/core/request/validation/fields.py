"""All values of one kind in a request, wherever the service model puts them; checks of its S3 URIs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.core.errors import Path, path_text
from trainmaster.core.request.request_shapes import ROOT, SHAPES
from trainmaster.core.request.s3_uri import parse_s3
from trainmaster.core.request.strict_json import JsonValue, Mistake
from trainmaster.core.request.validation.sections import Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    path: Path
    value: str
    beside: dict[str, JsonValue]
    """The structure that it is a member of."""

    @property
    def field(self) -> str:
        return path_text(self.path)


def values_of(shape: str, body: JsonValue) -> Iterator[Found]:
    """Yield every text with this shape in the model.

    New fields of the model are found without a change here.
    """
    yield from _walk(ROOT, body, shape, ())


def _walk(name: str, value: JsonValue, wanted: str, path: Path) -> Iterator[Found]:
    shape = SHAPES[name]
    if isinstance(value, dict) and shape["type"] == "structure":
        for key, member in shape["members"].items():
            inner = value.get(key)
            if member == wanted and isinstance(inner, str):
                yield Found(path=(*path, key), value=inner, beside=value)
            elif inner is not None:
                yield from _walk(member, inner, wanted, (*path, key))
    elif isinstance(value, list) and shape["type"] == "list":
        for index, inner in enumerate(value):
            yield from _walk(shape["member"], inner, wanted, (*path, index))


_SHAPE = re.compile(SHAPES["S3Uri"]["pattern"])
"""Pattern of the model; a text that does not match it is reported as a mistake of shape."""
_HINT = "write it as s3://bucket/prefix, the bucket in lower case, without spaces around it"


def place_mistakes(body: Section) -> Iterator[Mistake]:
    for uri in values_of("S3Uri", dict(body)):
        if _SHAPE.fullmatch(uri.value) and parse_s3(uri.value) is None:
            yield Mistake(uri.path, "is not a place in S3", _HINT)
