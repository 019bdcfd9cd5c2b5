"""S3 URIs: the service model takes any scheme, any bucket and spaces around them; S3 does not."""

import re
from collections.abc import Iterator

from trainmaster.core.request.request_shapes import SHAPES
from trainmaster.core.request.s3_uri import parse_s3
from trainmaster.core.request.validation.fields import values_of
from trainmaster.core.request.validation.sections import Section
from trainmaster.core.request_errors import Mistake

_SHAPE = re.compile(SHAPES["S3Uri"]["pattern"])
"""What does not match it is told as a mistake of shape."""
_HINT = "write it as s3://bucket/prefix, the bucket in lower case, without spaces around it"


def place_mistakes(body: Section) -> Iterator[Mistake]:
    for found in values_of("S3Uri", dict(body)):
        if _SHAPE.fullmatch(found.value) and parse_s3(found.value) is None:
            yield Mistake(found.path, "is no place in S3", _HINT)
