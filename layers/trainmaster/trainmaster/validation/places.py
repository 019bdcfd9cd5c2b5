"""S3 URIs: the service model takes any scheme, any bucket and spaces around them; S3 does not."""

import re
from collections.abc import Iterator

from trainmaster.request_errors import Mistake
from trainmaster.request_shapes import SHAPES
from trainmaster.s3_locations import parse_s3
from trainmaster.validation.fields import values_of
from trainmaster.validation.sections import Section

_SHAPE = re.compile(SHAPES["S3Uri"]["pattern"])
"""What does not match it is told as a mistake of shape."""
_HINT = "write it as s3://bucket/prefix, the bucket in lower case, without spaces around it"


def place_mistakes(body: Section) -> Iterator[Mistake]:
    for found in values_of("S3Uri", dict(body)):
        if _SHAPE.fullmatch(found.value) and parse_s3(found.value) is None:
            yield Mistake(found.path, "is no place in S3", _HINT)
