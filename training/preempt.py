"""Asks to stop by SIGTERM, and an agreement of all ranks on the step after which they stop."""

import signal
from types import FrameType
from typing import Self

import torch
import torch.distributed as dist

EXIT_PREEMPTED = 128 + signal.SIGTERM
"""As if SIGTERM had ended the program: a job that is not finished must not look finished."""


class StopRequest:
    """SIGTERM, remembered until a step is done. Use: ``with StopRequest() as stop``."""

    def __init__(self) -> None:
        self._asked = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGTERM, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._before)

    def agreed(self) -> bool:
        """True on every rank when any rank was asked; all ranks must call it, after each step.

        A rank that stopped alone would leave the others waiting for it. The vote is one number on the
        CPU, so no rank waits for its GPU here.
        """
        if not dist.is_initialized():
            return self._asked
        votes = torch.tensor([self._asked], dtype=torch.int32)
        dist.all_reduce(votes, dist.ReduceOp.MAX)
        return bool(votes)

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self._asked = True
