"""The function behind the custom widget, over a real table: what it shows, to whom, and with which calls."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from trainmaster.widget import DESCRIPTION, queue_picture

from tests.builders import A, minutes
from tests.integration.cloud import OUTAGE, Cloud
from tests.integration.conftest import TABLE, make_table
from tests.integration.world import World

TWO_POOLS = {
    "version": 1,
    "pools": [{"name": "main", "capacity": {A: 1}}, {"name": "side", "capacity": {"ml.b.xlarge": 3}}],
}


@pytest.fixture(scope="module")
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def world(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One job runs, one waits, one is held."""
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "trainmaster")
    with cloud.open():
        cloud.empty()
        make_table(cloud.client("dynamodb"), TABLE)
        queue = cloud.client("sqs").create_queue(QueueName="doorbell")
        world = World(cloud=cloud, queue_url=queue["QueueUrl"], policy=TWO_POOLS)
        for name in ("runs-secretly", "waits-secretly", "held-secretly"):
            world.submit(name)
        world.patch("held-secretly", held=True)
        world.schedule()
        world.now += minutes(7)
        yield world


def shown(world: World, **event: Any) -> str:
    page = world.call("queue_widget", event)
    assert isinstance(page, str)
    return page


def with_names(world: World) -> World:
    world.wiring.settings = replace(world.wiring.settings, widget_shows_names=True)
    return world


def test_it_describes_itself_as_the_protocol_asks(world: World) -> None:
    assert shown(world, describe=True) == DESCRIPTION
    assert DESCRIPTION.startswith("## ")
    assert "``` yaml\npool: main\n```" in DESCRIPTION


def test_the_queue_with_its_reasons_and_without_a_name(world: World) -> None:
    page = shown(world, widgetContext={"theme": "dark", "params": {}})
    assert "<h3>main</h3><p>ml.a.xlarge: 1 of 1 used</p><p>1 running, 2 waiting</p>" in page
    assert "waits for free instances" in page
    assert "held by a user or an admin" in page
    assert "<td>7m</td>" in page
    assert "<h3>side</h3><p>ml.b.xlarge: 0 of 3 used</p><p>0 running, 0 waiting</p>" in page
    for name in ("secretly", "default", "ada"):
        assert name not in page


def test_names_of_jobs_and_teams_only_where_the_stack_says_so(world: World) -> None:
    page = shown(with_names(world))
    assert {f"<td>{name}-secretly</td>" in page for name in ("runs", "waits", "held")} == {True}
    assert "<td>default</td>" in page
    assert "ada" not in page, "of persons none, ever"


def test_it_reads_with_the_two_calls_that_its_role_allows_and_writes_nothing(world: World) -> None:
    before = world.items()
    broken = {"pk": {"S": "R#main"}, "sk": {"S": "nobody-knows"}, "team": {"S": "x"}}
    world.put_back([*before, broken])
    calls = world.calls_of(lambda: shown(world))
    assert set(calls) == {"GetItem", "Query"}
    assert len(calls) <= 20, "two pools"
    assert len(world.items()) == len(before) + 1


def test_one_pool_alone_on_wish_and_a_wrong_wish_is_said(world: World) -> None:
    assert "<h3>main</h3>" not in shown(world, pool="side")
    wrong = shown(world, pool="<b>x</b>")
    assert "there is no pool" in wrong
    assert "<b>" not in wrong
    assert "must be the name of a pool" in shown(world, pool=["side"])
    assert "<h3>main</h3>" in shown(world, pool="")


def test_a_pause_is_said(world: World) -> None:
    assert world.api("PUT", "/policy/paused", {"paused": True})["status"] == 200
    assert "An admin paused starts and preemptions." in shown(world)


def test_the_table_away_is_a_sentence_and_no_error(world: World) -> None:
    world.wire.lasting["GetItem"] = OUTAGE
    assert "The queue cannot be read at the moment" in shown(world)
    world.wire.heal()
    world.wire.lasting["Query"] = OUTAGE
    assert shown(world).count("This pool could not be read") == 2


def test_no_further_pool_is_begun_when_the_time_is_nearly_over(world: World) -> None:
    world.remaining_ms = lambda: 4_000
    page = shown(world)
    assert "<h3>main</h3>" in page
    assert "Pools not shown: 1." in page


def test_a_long_queue_costs_and_shows_no_more_than_its_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_picture, "MOST_WAITING", 2)
    for number in range(3):
        world.submit(f"more-{number}")
    world.schedule()
    page = shown(world)
    assert page.count("<td>pending</td>") == 2
    assert "Jobs not shown: 2." in page
