"""Other histories and policies to compare with."""

import pytest
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.simulate.engine.variations import sized_to, with_capacity, without_rule, without_team

from tests.unit.client.simulate.replayed import G5, history, job, policy

TWO_TEAMS = history(job("a"), job("b", team="speech"), job("c"))
TEAMS = [
    {"name": "vision", "rules": {"max_runtime": "1d"}},
    {"name": "speech", "rules": {"max_runtime": "2d"}},
]
RULED = policy(teams=TEAMS, rest={"rules": {"max_runtime": "3d", "max_instances": 4}})


def test_a_team_is_left_out_and_that_is_said() -> None:
    found = without_team(TWO_TEAMS, "vision")
    assert [one.name for one in found.jobs] == ["b"]
    assert found.not_known == ("The 2 jobs of team vision are left out.",)


def test_a_team_without_jobs_is_a_mistake() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"no jobs of team 'nlp'(?s:.*)Its teams: speech, vision\."
    ):
        without_team(TWO_TEAMS, "nlp")


def test_a_rule_is_left_out_wherever_it_is_written() -> None:
    found = without_rule(RULED, "max_runtime")
    assert found.rules.max_runtime is None
    assert [team.rules.max_runtime for team in found.teams] == [None, None]
    assert found.rules.max_instances == RULED.rules.max_instances


def test_or_that_of_one_team_alone() -> None:
    found = without_rule(RULED, "teams.speech.rules.max_runtime")
    assert found.rules.max_runtime == RULED.rules.max_runtime
    assert [team.rules.max_runtime is None for team in found.teams] == [False, True]


def test_a_rule_that_is_not_written_is_a_mistake() -> None:
    with pytest.raises(InvalidArgumentError, match=r"no rule 'images'(?s:.*)rules.max_instances"):
        without_rule(RULED, "images")


def test_capacity_is_set_by_type_on_demand_or_spot() -> None:
    found = with_capacity(policy(2, spot_capacity={"ml.p5.48xlarge": 1}), {G5: 5, "ml.p5.48xlarge:spot": 0})
    assert dict(found.pools[0].capacity) == {G5: 5}
    assert dict(found.pools[0].spot_capacity) == {"ml.p5.48xlarge": 0}


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        pytest.param({"ml.g6.xlarge": 1}, "No pool has ml.g6.xlarge", id="unknown type"),
        pytest.param({G5: -1}, "is below 0", id="negative"),
    ],
)
def test_a_capacity_that_cannot_be_is_a_mistake(counts: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        with_capacity(policy(), counts)


def test_pools_are_sized_to_the_mean_demand_start_up_included() -> None:
    jobs = history(job("a", trains=9760), job("b", at=10_000, n=3, trains=3093))
    # (10000 + 3 * 3333) / 10000 s: 2.0 instances on average
    for load, expected in ((0.5, 4), (0.49, 5), (1.0, 3)):
        found, sentences = sized_to(jobs, policy(1), load=load)
        assert dict(found.pools[0].capacity) == {G5: expected}
    assert sentences == (
        "Pool g1 is sized to the history: 3 ml.g5.xlarge instead of 1, of which it uses 100% on average.",
    )


def test_quotas_keep_their_share_of_a_pool_that_is_sized() -> None:
    rules = policy(10, teams=[{"name": "vision"}, {"name": "speech"}], quotas={"vision": 5, "speech": 4})
    found, _ = sized_to(history(job("a", at=1, trains=1), job("b", at=100, n=4)), rules, load=1.0)
    (pool,) = found.pools
    assert dict(pool.capacity) == {G5: 53}
    assert {team: dict(quota.nominal) for team, quota in pool.quotas.items()} == {
        "vision": {G5: 26},
        "speech": {G5: 21},
    }


def test_a_load_is_a_share() -> None:
    with pytest.raises(InvalidArgumentError, match="A load of 95 is no share"):
        sized_to(TWO_TEAMS, policy(), load=95)
