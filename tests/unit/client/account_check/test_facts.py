"""The table of facts: every assumption names code that is there, and there is a verdict for it."""

import importlib.util

import pytest
from trainmaster_client.account_check.examination import FACTS, Asked, judge, unmet_needs
from trainmaster_client.account_check.facts import UNMET, Fact, Need, Word
from trainmaster_client.account_check.measured import most_usd
from trainmaster_client.account_check.trial_requests import (
    PREFIX,
    TRIALS,
    Means,
    changed,
    image_in,
    pending_probes,
    refusal_probes,
)

PLAN = "arn:aws:sagemaker:eu-west-1:111122223333:training-plan/spring"
MEANS = Means(
    run="1122000000abcd",
    region="eu-west-1",
    role="arn:aws:iam::111122223333:role/training",
    bucket="training-data",
    image="111122223333.dkr.ecr.eu-west-1.amazonaws.com/own:1",
)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.id)
def test_the_code_that_stands_on_a_fact_exists(fact: Fact) -> None:
    assert fact.where
    assert [name for name in fact.where if importlib.util.find_spec(name) is None] == []


def test_facts_have_names_of_their_own_and_all_fourteen_groups() -> None:
    assert len({fact.id for fact in FACTS}) == len(FACTS)
    assert {fact.group for fact in FACTS} == set(range(1, 15))


def test_a_need_that_is_not_met_is_said() -> None:
    assert set(UNMET) == set(Need)


def test_without_any_record_every_fact_is_skipped_with_a_reason() -> None:
    asked = Asked(gpu="ml.g5.xlarge", starve=True, is_loopback=False, plan=PLAN)
    verdicts = [judge(fact, {}, unmet_needs(asked, has_quota=True)) for fact in FACTS]
    assert {verdict.word for verdict in verdicts} == {Word.SKIPPED}
    assert all(verdict.said for verdict in verdicts)


def test_a_right_that_is_missing_skips_its_facts_with_the_action() -> None:
    ended = {"ended_looks": {"events": "missing right: events:PutRule"}}
    event = next(fact for fact in FACTS if fact.id == "event-number")
    assert judge(event, ended, ()).said == "missing right: events:PutRule"


def test_the_check_costs_less_than_two_dollars() -> None:
    assert (most_usd(None, starve=False) or 99) < 2
    assert (most_usd("ml.g5.xlarge", starve=True) or 99) < 2


def test_a_type_without_a_price_has_no_cost() -> None:
    assert most_usd("ml.nobody.large", starve=False) is None


def test_every_trial_is_recognisable_small_and_short() -> None:
    for trial in TRIALS:
        request = MEANS.request(trial)
        assert request["TrainingJobName"].startswith(PREFIX)
        assert request["Tags"] == [{"Key": "trainmaster-check", "Value": MEANS.run}]
        assert request["ResourceConfig"]["InstanceCount"] == 1
        assert request["StoppingCondition"]["MaxRuntimeInSeconds"] <= 600
        assert max(map(len, request["AlgorithmSpecification"]["ContainerEntrypoint"])) <= 256


def test_no_job_that_is_not_refused_runs_longer_than_a_trial_but_the_one_that_asks_for_it() -> None:
    probes = [
        *refusal_probes(MEANS, account="111122223333", instances=21, quota_zero="ml.p5.48xlarge"),
        *pending_probes("ml.g5.xlarge"),
    ]
    requests = {one.fact: changed(MEANS.request(TRIALS[0]), one.members) for one in probes}
    assert set(requests) <= {fact.id for fact in FACTS}
    long = {fact for fact, one in requests.items() if one["StoppingCondition"]["MaxRuntimeInSeconds"] > 600}
    assert long == {"refused-run-time"}
    assert MEANS.request(TRIALS[0])["RoleArn"] == MEANS.role, "a probe changes a copy"


def test_the_name_of_every_probe_is_its_own_and_short_enough() -> None:
    names = [MEANS.name(f"probe-{fact.id}") for fact in FACTS]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 63


def test_there_is_a_public_image_where_aws_keeps_them_in_one_account() -> None:
    assert (image_in("us-east-1") or "").startswith("763104351884.dkr.ecr.us-east-1.amazonaws.com/")
    assert image_in("eu-south-2") is None
