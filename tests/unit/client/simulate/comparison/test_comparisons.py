import math
from decimal import Decimal

import pytest
from trainmaster.core.costs.prices import PriceTable
from trainmaster_client.simulate.comparison.comparisons import compare
from trainmaster_client.simulate.comparison.figure_rows import figure_rows
from trainmaster_client.simulate.comparison.figures import waits_of
from trainmaster_client.simulate.comparison.outcomes import Fate
from trainmaster_client.simulate.comparison.summaries import summary
from trainmaster_client.simulate.engine.recorded import RECORDED

from tests.unit.client.simulate.hand_made import attempt, history, job, replay, two_policies, warm


def test_waits_are_grouped_by_team_and_by_priority() -> None:
    plain, other = two_policies().columns
    assert plain.waits_by_team["language"].p50_s == 90
    assert other.waits_by_team["language"].p50_s == 5640
    assert list(plain.waits_by_class) == ["priority 500", "priority 0"]
    assert (plain.waits_by_class["priority 0"].jobs, plain.waits_by_class["priority 0"].p90_s) == (2, 7770)


def test_waste_is_lost_work_and_stopping_in_hours_of_gpus() -> None:
    plain, other = two_policies().columns
    assert plain.figures.waste_h == pytest.approx(4 * (1560 + 90) / 3600)
    assert (other.figures.waste_h, other.figures.preemptions) == (0, 0)
    assert plain.figures.startup_h == pytest.approx(4 * 4 * 240 / 3600)
    assert other.figures.idle_warm_h == pytest.approx(4 * 600 / 3600)


def test_goodput_is_what_lasted_until_the_last_submission() -> None:
    plain, other = two_policies().columns
    # until second 3600 on one instance: big trained 240-1800 and lost it, urgent trained from 2130 on
    assert plain.figures.goodput == pytest.approx((3600 - 2130) / 3600)
    assert other.figures.goodput == pytest.approx((3600 - 240) / 3600)


def test_a_delay_weighs_more_in_a_higher_class() -> None:
    plain, _ = two_policies().columns
    # delays: big 4170, small 8010 (weight 1), urgent 330 (weight 3)
    assert plain.figures.weighted_delay_h == pytest.approx((4170 + 8010 + 3 * 330) / 5 / 3600)


def test_instances_are_billed_until_they_are_free_and_while_they_are_kept_warm() -> None:
    plain, other = two_policies().columns
    assert plain.bill.total_usd == pytest.approx(7.09 * 12510 / 3600)
    assert other.bill.idle_warm_usd == pytest.approx(7.09 * 600 / 3600)
    assert other.bill.total_usd == pytest.approx(7.09 * (10200 + 600) / 3600)
    parts = plain.bill.useful_usd + plain.bill.startup_usd + plain.bill.lost_usd
    assert parts == pytest.approx(plain.bill.jobs_usd)
    assert plain.bill.useful_usd == pytest.approx(7.09 * (7200 + 1800 + 900) / 3600)


def test_a_type_without_price_is_named_and_in_no_sum() -> None:
    jobs = history(job("a"), job("b", instances={"ml.new.xlarge": 1}))
    found = replay("p", attempt("a", 0, 0, 3600), attempt("b", 0, 0, 3600, instance_type="ml.new.xlarge"))
    one, _ = compare(jobs, [found, replay("q")]).columns
    assert one.bill.total_usd == pytest.approx(7.09)
    assert one.bill.unpriced == ("ml.new.xlarge",)
    prices = PriceTable(overrides={"ml.new.xlarge": Decimal(2)})
    priced, _ = compare(jobs, [found, replay("q")], prices=prices).columns
    assert priced.bill.total_usd == pytest.approx(9.09)
    assert priced.bill.unpriced == ()


def test_hours_are_those_of_instances_where_a_type_has_no_gpus() -> None:
    jobs = history(job("a"), job("b", instances={"ml.m5.large": 1}))
    assert two_policies().devices.unit == "GPU"
    assert compare(jobs, [replay("p"), replay("q")]).devices.unit == "instance"


def test_the_matrix_says_who_took_from_whom_and_what_that_cost() -> None:
    plain, other = two_policies().columns
    assert dict(plain.preemptions.by_teams) == {("language", "vision"): 1}
    (pair,) = plain.preemptions.worst
    assert (pair.preemptor, pair.victim, pair.times) == ("urgent", "big", 1)
    assert pair.lost_h == pytest.approx(4 * 1560 / 3600)
    assert other.preemptions.count == 0


def test_winners_and_losers_have_names_and_how_long() -> None:
    changes = two_policies().changes["policy.yaml"]
    assert [(one.job, one.change_s) for one in changes.winners] == [("small", -2100)]
    assert [(one.job, one.change_s, one.end_change_s) for one in changes.losers] == [("urgent", 5550, 5340)]
    assert (changes.shorter, changes.longer, changes.same) == (1, 1, 1)
    assert [one.team for one in changes.teams] == ["vision", "language"]


def test_a_job_that_never_started_in_one_column_loses_most_and_is_counted() -> None:
    jobs = history(job("a"), job("b", at=10), job("c", at=20))
    before = replay("before", *(attempt(name, 100, 200, 3800) for name in "abc"))
    after = replay("after", attempt("a", 0, 200, 3800), refused={"c": "no pool"})
    found = compare(jobs, [before, after])
    changes = found.changes["after"]
    assert (changes.started_before_alone, changes.refused_after_alone) == (1, 1)
    assert [(one.job, one.change_s) for one in changes.losers] == [("b", math.inf)]
    last = found.last
    assert (last.waits.jobs, last.waits.never_started, last.waits.p90_s) == (2, 1, math.inf)
    assert (last.fates[Fate.WAITING], last.fates[Fate.REFUSED]) == (1, 1)
    said = "\n".join(summary(found))
    assert "after: 1 job still waited at the end" in said
    assert "after: 1 job refused, most of them: no pool" in said


def test_the_base_is_the_first_column_that_was_replayed() -> None:
    jobs = history(job("a"))
    found = compare(jobs, [replay(RECORDED), replay("revision 7"), replay("new.yaml")])
    assert (found.base.label, list(found.changes)) == ("revision 7", ["recorded", "new.yaml"])
    assert compare(jobs, [replay(RECORDED), replay("new.yaml")]).base.label == RECORDED


def test_curves_count_waiting_jobs_and_devices_in_use() -> None:
    plain, _ = two_policies().columns
    assert plain.curves.bin_s == 3600
    # first hour: urgent waits 1800-1890; big holds 0-1890, urgent 1890-3600
    assert plain.curves.queue[0] == pytest.approx((90 + 1710) / 3600)
    assert plain.curves.used[0] == pytest.approx(4.0)
    assert plain.curves.used_by_team["language"][0] == pytest.approx(4 * 1710 / 3600)
    assert plain.curves.capacity == 4


def test_use_by_hour_of_the_week_is_a_share_of_the_capacity() -> None:
    plain, _ = two_policies().columns
    assert plain.use_by_hour[0] == pytest.approx(1.0)
    assert plain.use_by_hour[1] is None


def test_figures_of_no_job_at_all_are_none_or_zero() -> None:
    found = compare(history(job("a")), [replay("p", instances=0), replay("q", instances=0)])
    assert (found.base.figures.goodput, found.base.bill.total_usd) == (None, 0)
    assert waits_of([]).p50_s is None
    assert [row.cells for row in figure_rows(found) if row.id == "goodput"] == [["-", "-"]]


def test_rows_that_are_nothing_in_every_column_are_left_out() -> None:
    assert "idle_warm_h" in {row.id for row in figure_rows(two_policies())}
    found = compare(history(job("a")), [replay("p", warm=[]), replay("q")])
    assert {"idle_warm_h", "interruptions", "refused"}.isdisjoint(row.id for row in figure_rows(found))


def test_less_is_better_where_it_is_and_more_where_that_is() -> None:
    verdicts = {row.id: row.verdicts for row in figure_rows(two_policies())}
    assert (verdicts["waste_h"], verdicts["goodput"], verdicts["preemptions"]) == ([0, 1], [0, 1], [0, 0])


def test_the_summary_is_short_and_names_gainers_and_losers() -> None:
    lines = summary(two_policies())
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 110
    assert lines[0] == "3 jobs, 2026-01-05 to 2026-01-05: plain queue -> policy.yaml"
    assert "wasted GPU hours              2 -> 0  (100 % less)" in lines
    assert "team that loses most: language, 2m -> 1.6h on average (1.5h later, 1 job)" in lines


def test_warm_time_is_never_negative() -> None:
    found = compare(history(job("a")), [replay("p", warm=[warm(50, 40)]), replay("q")])
    assert found.base.figures.idle_warm_h == 0
