"""Arrays for tests."""

from dataclasses import replace
from typing import Any

from trainmaster.core.arrays.model import Array
from trainmaster.core.arrays.tasks import array_entry_id
from trainmaster.core.jobs.index_sets import all_bits

from tests.builders import job


def array_of(name: str = "sweep", indices: tuple[int, ...] = tuple(range(8)), **fields: Any) -> Array:
    """An array none of whose tasks exists as a job yet."""
    template = fields.pop("template", None) or job(name)
    spec = replace(template.spec, entry_id=array_entry_id(template.spec.entry_id.ljust(26, "0")))
    template = replace(template, spec=spec)
    given = {"unexpanded": all_bits(len(indices)), **fields}
    return Array(template=template, indices=indices, **given)
