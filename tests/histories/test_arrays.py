"""Random histories of arrays: submitted, throttled, held, cancelled in part, while passes die and overlap."""

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from trainmaster.api.add_array import add_array
from trainmaster.api.array_changes import cancel_array, patch_array
from trainmaster.api.request_context import Call, enter
from trainmaster.core.errors import TrainmasterError

from tests.histories.drawn import document_of, request_of, with_parents
from tests.histories.history import History
from tests.histories.playing import STAGE, played
from tests.histories.world import USER, World

TASKS = ("0-5", "0-20", "1-9:2", "3 5 8@1", "0-11%3")
MOST_ARRAYS = 2
BLOCK, MANY, STEPS = 30, 600, 260

pytestmark = pytest.mark.thorough


def after_others(request: dict[str, Any], dice: random.Random, others: list[str]) -> dict[str, Any]:
    """A third of the arrays wait for a job or for the array before, and end if they can run no more."""
    waiting = with_parents(request, dice, others)
    tags = [tag for tag in waiting["Tags"] if tag["Key"] != "trainmaster:after-failed"]
    return {**waiting, "Tags": tags}


@dataclass(slots=True)
class Sweeping(History):
    """A history in which people submit arrays, too."""

    arrays: list[str] = field(default_factory=list)
    running: Counter[str] = field(default_factory=Counter)
    """Tasks that ran at the last look, by array."""
    started: int = 0
    waited: int = 0
    """Arrays that waited for a job or an array, and then ran or ended with it."""
    throttled: int = 0
    """Looks at an array that ran as many tasks as it may."""

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.world = World(document=document_of(self.dice), stage=self.stage)
        self.moves = (
            self.submit,
            *[self.submit_array] * 3,
            *[self.answer_the_door] * 8,
            *[self.deliver] * 5,
            *[self.train] * 4,
            *[self.end] * 4,
            *[self.reconcile] * 2,
            *[self.patch_array] * 2,
            self.cancel_tasks,
            self.refuse,
            *[self.time_passes] * 2,
            self.change_policy,
        )

    def submit_array(self) -> None:
        if len(self.arrays) >= MOST_ARRAYS:
            return
        name = f"sweep{len(self.arrays)}"
        self.arrays.append(name)
        request = request_of(name, self.dice, self.world.document)
        request = after_others(request, self.dice, [*self.names, *self.arrays[:-1]])
        stop_after = self.dice.choice([0, 2, 10])
        body = {"request": request, "tasks": self.dice.choice(TASKS), "stop_after_failures": stop_after}
        self.start(f"submit {name}", lambda: self._call("add", name, body))

    def patch_array(self) -> None:
        if self.arrays:
            name = self.dice.choice(self.arrays)
            patch = self.dice.choice([{"at_most": 1}, {"at_most": 4}, {"held": True}, {"held": False}])
            patch = self.dice.choice([patch, {"at_most": None}, {"priority": self.dice.randint(0, 5)}])
            self.start(f"patch {name} {patch}", lambda: self._call("patch", name, patch))

    def cancel_tasks(self) -> None:
        if self.arrays:
            name = self.dice.choice(self.arrays)
            query = self.dice.choice([{}, {"tasks": ["3"]}, {"tasks": ["1,5"]}, {"tasks": ["3"]}])
            self.start(f"cancel {query} of {name}", lambda: self._call("cancel", name, None, query))

    def _call(
        self, what: str, name: str, body: Any = None, query: dict[str, list[str]] | None = None
    ) -> None:
        outside = self.world.outside
        call = Call(
            user_arn=USER,
            query=query or {},
            body=None if body is None else json.dumps(body),
            is_base64=False,
            content_type="application/json",
        )
        try:
            if what == "add":
                add_array(call, outside)
            elif what == "patch":
                patch_array(enter(call, outside), name)
            else:
                cancel_array(enter(call, outside), name)
        except TrainmasterError:
            return

    def look(self) -> None:
        """No throttle is exceeded by a start, tasks add up, and each has one job at most."""
        for name in self.world.tables.arrays:
            array = self.world.reader.array(name)
            assert array is not None
            counts = array.counts
            waiting = counts.waiting + counts.held + counts.running
            assert waiting + counts.completed + counts.failed + counts.stopped == counts.total, (name, counts)
            assert array.jobs.waiting <= 32 + counts.running
            most = array.at_most
            grew, self.running[name] = counts.running > self.running[name], counts.running
            assert most is None or not grew or counts.running <= most, (name, most, counts)
            self.throttled += most is not None and counts.running == most

    def settling(self) -> tuple[Callable[[], Any], ...]:
        """Release what equal failures have held: news of ends may come only now."""
        released = (partial(self._call, "patch", name, {"held": False}) for name in self.arrays)
        return (*released, *History.settling(self))

    def is_over(self) -> bool:
        arrays = (self.world.reader.array(name) for name in self.world.tables.arrays)
        return History.is_over(self) and all(array is None or array.is_ended for array in arrays)

    def settle(self) -> None:
        self.finish_all()
        for name in self.arrays:
            self._call("patch", name, {"held": False, "at_most": None})
        History.settle(self)
        for name in self.world.tables.arrays:
            array = self.world.reader.array(name)
            assert array is not None
            if array.held:  # two equal failures have held it meanwhile
                self._call("cancel", name)
                self.stage.finish(self._quiet(self.world.run_pass))
                self.stage.finish(self._quiet(self.world.run_pass))
                array = self.world.reader.array(name)
                assert array is not None
            assert array.is_ended, (name, array.counts)
            assert array.ended_at is not None, name
            self.started += array.ends.completed.bit_count()
            self.waited += array.template.after is not None and bool(array.template.after.conditions)


def test_arrays_keep_the_invariants_whatever_is_interleaved() -> None:
    _play_block(0)


@pytest.mark.long
@pytest.mark.parametrize("first", range(BLOCK, MANY, BLOCK))
def test_they_do_in_many_more_histories(first: int) -> None:
    _play_block(first)


def _play_block(first: int) -> None:
    histories = [
        played(Sweeping(seed=seed, stage=STAGE, steps=STEPS)) for seed in range(first, first + BLOCK)
    ]
    assert sum(history.started for history in histories) >= BLOCK, "the dice must come to the case"
    assert sum(history.throttled for history in histories) >= BLOCK, "the dice must come to the case"
    assert sum(history.waited for history in histories) >= 1, "the dice must come to the case"
