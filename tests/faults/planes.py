"""A plane without AWS for scenes: processes run to their end one after the other."""

from collections.abc import Callable
from typing import Any

from tests.histories.playing import STAGE
from tests.histories.stage import Process
from tests.histories.world import World


def plane(document: dict[str, Any]) -> World:
    return World(document=document, stage=STAGE)


def run(world: World, act: Callable[[], Any]) -> None:
    """One invocation; then the books and SageMaker are compared."""
    STAGE.finish(Process(name="process", act=act))
    world.watch.look()


def states(world: World, *names: str) -> list[str]:
    return [world.job(name).state.value for name in names]
