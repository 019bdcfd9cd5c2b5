"""The fault list: what may go wrong and what has to come of it. A row's tests are named ``test_<id>_...``."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    id: str
    fault: str
    outcome: str


_LIST = Path(__file__).with_name("rows.txt")
_ROW = re.compile(r"^([A-Z][0-9]+b?) +(.*?)\n  = (.*?)(?=\n+[A-Z][0-9]|\n*\Z)", re.MULTILINE | re.DOTALL)


def _rows() -> tuple[Row, ...]:
    return tuple(
        Row(id=name, fault=_one_line(fault), outcome=_one_line(outcome))
        for name, fault, outcome in _ROW.findall(_LIST.read_text(encoding="utf-8"))
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


ROWS = _rows()
