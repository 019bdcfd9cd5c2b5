"""What is decoded of torch's index, and what is not."""

import pickle
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint import metadata as torch_index
from torch.distributed.checkpoint.metadata import Metadata, TensorProperties

from training.preemptible.checkpoint.hashes import DamagedError
from training.preemptible.checkpoint.shards import read_index

_MEMORY_FORMATS = torch_index._MEM_FORMAT_ENCODING


@dataclass
class _Taken:
    """Pickled as something's attribute."""

    of: Any
    name: str

    def __reduce__(self) -> tuple[Any, tuple[Any, str]]:
        return getattr, (self.of, self.name)


def _index(**parts: Any) -> bytes:
    return pickle.dumps(Metadata(state_dict_metadata={}, **parts))


def test_a_member_of_an_enumeration_is_decoded_as_each_python_pickles_it() -> None:
    found = read_index(_index(planner_data=_Taken(_MEMORY_FORMATS, "TORCH_PRESERVE_FORMAT")))
    assert found.planner_data is _MEMORY_FORMATS.TORCH_PRESERVE_FORMAT
    assert (
        read_index(_index(planner_data=TensorProperties(dtype=torch.float32))).planner_data.dtype
        is torch.float32
    )


@pytest.mark.parametrize(
    ("of", "name"),
    [
        pytest.param(_MEMORY_FORMATS, "__class__", id="no member"),
        pytest.param(_MEMORY_FORMATS, "mro", id="a method"),
        pytest.param(torch.Size, "__new__", id="of another type"),
    ],
)
def test_no_other_attribute_is_taken(of: object, name: str) -> None:
    with pytest.raises(DamagedError, match=f"takes {name} of .*, which is not run"):
        read_index(_index(planner_data=_Taken(of, name)))
