"""Warm pools at SageMaker: lengthened, given up, and counted until they are gone."""

from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from trainmaster.core.errors import StillWarmError
from trainmaster.core.planning.actions import ReleaseWarm
from trainmaster.core.planning.apply import applied
from trainmaster.core.planning.changes import WarmPoolChange
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.services.scheduler import warm_keeping
from trainmaster.services.scheduler.context import PassContext

from tests.builders import NOON, minutes, of
from tests.memory.sagemaker import MemorySageMaker, TrainingJob
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables

POOL = WarmPool(
    training_job_name="old",
    team="default",
    vector=of(1),
    warm_key="k",
    since=NOON,
    expires_at=NOON + minutes(10),
)


class Scene:
    """A warm pool of ten minutes, as SageMaker keeps it and as the table counts it."""

    def __init__(self) -> None:
        self.now = NOON
        self.tables = Tables()
        self.sagemaker = MemorySageMaker(clock=self.clock)
        left = TrainingJob(name="old", request={"ResourceConfig": {}}, created=NOON - minutes(60))
        left.status = left.secondary = "Completed"
        left.ended, left.warm, left.kept_until = NOON, "Available", NOON + minutes(10)
        self.sagemaker.jobs["old"] = left
        store = MemoryJobStore(self.tables)
        store.change_warm("main", None, POOL, at=NOON)
        parts: Any = SimpleNamespace(pool="main", store=store, training=self.sagemaker, clock=self.clock)
        self.around = cast("PassContext", parts)

    def clock(self) -> datetime:
        return self.now

    @property
    def counted(self) -> list[WarmPool]:
        return list(self.tables.pools["main"].warm_pools.values())


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_pool_that_is_kept_for_longer_ends_later_in_both_places(scene: Scene) -> None:
    warm_keeping.keep(POOL, NOON + minutes(20), scene.around)
    assert [pool.expires_at for pool in scene.counted] == [NOON + minutes(20)]
    assert scene.sagemaker.jobs["old"].kept_until == NOON + minutes(20)


def test_a_pool_that_is_gone_cannot_be_kept_and_is_not_counted_any_more(scene: Scene) -> None:
    scene.now = NOON + minutes(11)
    warm_keeping.keep(POOL, NOON + minutes(20), scene.around)
    assert scene.counted == []


def test_a_pool_that_is_given_up_counts_until_sagemaker_says_that_it_is_gone(scene: Scene) -> None:
    for change in applied(ReleaseWarm(warm_pool=POOL, because="unused")):
        assert isinstance(change, WarmPoolChange)
        warm_keeping.change_warm_pool(change, scene.around)
    assert scene.counted == []


def test_a_pool_that_sagemaker_still_keeps_is_asked_for_again(scene: Scene) -> None:
    with pytest.raises(StillWarmError, match="old"):
        warm_keeping.settle(POOL, scene.around)
    assert scene.counted == [POOL]


def test_a_pool_whose_release_got_lost_on_the_way_is_given_up_again(scene: Scene) -> None:
    asked = replace(POOL, releasing=True)
    scene.around.store.change_warm("main", POOL, asked, at=NOON)
    with pytest.raises(StillWarmError):
        warm_keeping.settle(asked, scene.around)
    warm_keeping.settle(asked, scene.around)
    assert scene.counted == []


def test_a_pool_that_was_kept_for_longer_than_the_table_knows_is_given_up(scene: Scene) -> None:
    scene.sagemaker.jobs["old"].kept_until = NOON + minutes(60)
    scene.now = NOON + minutes(13)
    with pytest.raises(StillWarmError):
        warm_keeping.settle(POOL, scene.around)
    warm_keeping.settle(POOL, scene.around)
    assert scene.counted == []
