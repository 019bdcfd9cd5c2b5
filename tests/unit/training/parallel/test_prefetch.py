from dataclasses import dataclass, field
from typing import cast

from torch.distributed.fsdp import FSDPModule

from training.parallel.prefetch import gather_ahead


@dataclass
class Unit:
    name: str
    ahead: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)

    def set_modules_to_forward_prefetch(self, units: "list[Unit]") -> None:
        self.ahead = [one.name for one in units]

    def set_modules_to_backward_prefetch(self, units: "list[Unit]") -> None:
        self.behind = [one.name for one in units]


def _prefetched(count: int) -> list[Unit]:
    units = [Unit(name) for name in "abcd"]
    gather_ahead([cast("FSDPModule", one) for one in units], count=count)
    return units


def test_each_unit_gathers_those_after_it_and_in_the_backward_pass_those_before_it() -> None:
    units = _prefetched(2)
    assert [one.ahead for one in units] == [["b", "c"], ["c", "d"], ["d"], []]
    assert [one.behind for one in units] == [[], ["a"], ["b", "a"], ["c", "b"]]


def test_none_leaves_the_order_to_fsdp() -> None:
    assert [(one.ahead, one.behind) for one in _prefetched(0)] == [([], [])] * 4
