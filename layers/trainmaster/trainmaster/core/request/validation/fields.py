"""Values of one kind in a request, wherever the model puts them, and parts that contradict each other.

AWS refuses a contradiction at once, whatever each part says by itself. The queue refuses it with advice, the
twin's SageMaker in AWS's words; both read the same lists. Words with a source are AWS's own, the others
say in the same manner what its documentation rules out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.core.field_paths import Path, path_text
from trainmaster.core.request.request_shapes import ROOT, SHAPES
from trainmaster.core.request.s3_uri import parse_s3
from trainmaster.core.request.strict_json import JsonValue, Mistake
from trainmaster.core.request.validation.sections import Section

_LONGEST_SHOWN = 64
"""Characters of a name: as long as a channel's may be."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    mistake: Mistake
    aws: str
    """Text that CreateTrainingJob answers, as a ValidationException."""


def contradiction(path: Path, message: str, hint: str, *, aws: str) -> Contradiction:
    return Contradiction(mistake=Mistake(path, message, hint), aws=aws)


def names_text(names: list[str]) -> str:
    """Join names that nothing has checked yet, in one line of bounded length."""
    return ", ".join(name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}..." for name in names)
