"""A timeline drawn: what held which instance when, at any width, with whatever names."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from trainmaster_client.cli.timeline import ahead_lines
from trainmaster_client.cli.timeline_chart import Window, chart_lines, shortened
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.jobs.timelines import timeline

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
P5 = "ml.p5.48xlarge"


def hours(count: float) -> str:
    """So many hours after the noon before."""
    return (NOON + timedelta(hours=count - 24)).isoformat()


def span(job: str | None, begin: float, until: float | None, **fields: Any) -> dict[str, Any]:
    return {
        "job": job,
        "attempt": 0,
        "team": "vision",
        "pool": "p5",
        "instances": {P5: 1},
        "capacity_type": "on-demand",
        "claimed_at": hours(begin),
        "training_since": hours(begin + 1),
        "ended_at": None if until is None else hours(until),
        "end": None if until is None else "completed",
        "preempted_by": None,
        "warm_start": False,
        "lost_seconds": 0,
        **fields,
    }


def document(*attempts: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {"attempts": list(attempts), "capacity": [], "warm": [], "since": None, **parts}


def drawn(seen: dict[str, Any], width: int = 79) -> list[str]:
    """72 columns of 20 minutes."""
    window = Window(since=NOON - timedelta(hours=24), until=NOON, now=NOON, width=width, zone=UTC)
    return list(chart_lines(timeline(seen), window))


def rows(seen: dict[str, Any], width: int = 79) -> list[str]:
    return [line[6:-1] for line in drawn(seen, width) if line[4:6] == " |"]


def test_a_row_is_an_instance_with_start_up_training_preemption_and_warm_time() -> None:
    taken = span("translate", 0, 6, end="preemption", preempted_by="urgent", lost_seconds=720)
    done = span("urgent", 6, 12)
    live = span("vit-2", 14, None)
    warm = {"pool": "p5", "instance_type": P5, "instances": 1, "since": hours(12), "until": hours(13)}
    lines = drawn(document(taken, done, live, warm=[warm]))
    assert lines == [
        "2026-11-21 12:00 to 2026-11-22 12:00 UTC, a column is 20m00s",
        "",
        "p5: ml.p5.48xlarge on-demand",
        "      12:00    15:00    18:00    21:00    00:00    03:00    06:00    09:00",
        "   1 |///=translate====x///=urgent========~~~   ///=vit-2====================>|",
        "",
        "= training  / start-up  ~ warm  > live  : not recorded",
        "x preempted  ! ended, but not completed  blank: free",
        "? trained, and no checkpoint was seen: lost or saved",
        "",
        "Preempted",
        "  2026-11-21 18:00 translate by urgent, lost 12m00s",
    ]


def test_C19_training_of_which_no_checkpoint_was_seen_is_drawn_and_said_as_unknown() -> None:
    """Six hours, of them one of start-up: what is lost lies between nothing and all of the training."""
    fields = {"end": "preemption", "preempted_by": "urgent", "unknown_seconds": 5 * 3600}
    unseen = document(span("translate", 0, 6, **fields))
    assert rows(unseen)[0].startswith("///?translate????x ")
    assert drawn(unseen)[-1] == (
        "  2026-11-21 18:00 translate by urgent, lost 0s to 5h00m: no checkpoint was seen"
    )


def test_attempts_at_the_same_time_are_on_rows_of_their_own_and_free_ones_are_used_again() -> None:
    both = span("wide", 0, 6, instances={P5: 2})
    after = span("after", 6, 12)
    beside = span("next", 9, 12)
    shown = rows(document(both, after, beside))
    assert [row.replace(" ", "") for row in shown] == [
        "///=wide==========///=after=========",
        "///=wide==========///=next=",
    ]
    assert shown[1].index("///=next=") == 27


def test_types_and_capacity_types_and_pools_have_rows_of_their_own() -> None:
    attempts = [
        span("a", 0, 6),
        span("b", 0, 6, capacity_type="spot"),
        span("c", 0, 6, instances={"ml.g5.xlarge": 1, P5: 1}),
        span("d", 0, 6, pool="other"),
    ]
    headings = [line for line in drawn(document(*attempts)) if ": ml." in line]
    assert headings == [
        "other: ml.p5.48xlarge on-demand",
        "p5: ml.g5.xlarge on-demand",
        "p5: ml.p5.48xlarge on-demand",
        "p5: ml.p5.48xlarge spot",
    ]


def test_the_capacity_is_said_with_the_instants_of_its_changes() -> None:
    capacity = [
        {"at": hours(-100), "pool": "p5", "capacity": {P5: 4}, "spot_capacity": {}},
        {"at": hours(3), "pool": "p5", "capacity": {P5: 4}, "spot_capacity": {P5: 1}},
        {"at": hours(6), "pool": "p5", "capacity": {P5: 2}, "spot_capacity": {P5: 1}},
        {"at": hours(8), "pool": "other", "capacity": {P5: 9}, "spot_capacity": {}},
    ]
    assert "  capacity 4, 2 from 2026-11-21 18:00; used at once: 1" in drawn(
        document(span("a", 0, 6), capacity=capacity)
    )


def test_what_is_not_recorded_is_said_and_live_attempts_are_drawn_over_it() -> None:
    seen = document(span("live", -3, None), span("late", 12, 13), since=hours(8))
    lines = drawn(seen)
    assert rows(seen)[0].startswith("=live===")
    assert rows(document(span("late", 12, 13), since=hours(8)))[0][:24] == "::::: not recorded :::::"
    assert "Nothing is recorded before 2026-11-21 20:00, except what still runs." in lines


def test_a_failure_and_an_attempt_that_never_trained_are_marked() -> None:
    failed = span("a", 0, 3, end="gpu-oom")
    refused = span("b", 6, 6.01, training_since=None, end="capacity")
    assert rows(document(failed, refused))[0].rstrip() == "///=a===!         !"


def test_another_teams_job_has_its_teams_name() -> None:
    assert "(speech)" in rows(document(span(None, 0, 12, team="speech")))[0]


def test_nothing_at_all_is_said() -> None:
    assert "Nothing ran in this time." in drawn(document())


def test_a_preemptor_of_another_team_is_said_by_its_team() -> None:
    taken = span("mine", 0, 6, end="preemption", preempted_by=None, preempted_by_team="speech")
    assert drawn(document(taken))[-1] == "  2026-11-21 18:00 mine by a job of team speech, lost 0s"


def test_many_preemptions_are_counted_and_the_newest_are_shown() -> None:
    taken = [span(f"job-{n}", n, n + 1, end="preemption") for n in range(12)]
    lines = drawn(document(*taken))
    assert "Preempted (the newest 10 of 12)" in lines
    assert "job-11" in lines[-1]
    assert not any("job-1," in line for line in lines)


HOSTILE = ["[bold]x[/bold]", "a\x1b[31mred", "line\nbreak\r\t", "\u202eevil", "[@click=app.quit]x[/]", "=1+1"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text_and_moves_nothing(name: str) -> None:
    lines = drawn(document(span(name, 0, 20, end="preemption", preempted_by=name)))
    assert all(line.isprintable() for line in lines)
    assert len(rows(document(span(name, 0, 20)))[0]) == 72


@pytest.mark.parametrize("width", [40, 60, 80, 120, 400])
def test_no_row_is_wider_than_the_screen(width: int) -> None:
    seen = document(span("a-name-of-some-length-20261121-010203", 1, 20), since=hours(5))
    wide = [line for line in drawn(seen, width) if line.endswith("|")]
    assert [len(line) for line in wide] == [width]


@pytest.mark.parametrize("span_hours", [0.1, 1, 24, 24 * 30])
def test_ticks_are_apart_at_every_zoom(span_hours: float) -> None:
    window = Window(since=NOON - timedelta(hours=span_hours), until=NOON, now=NOON, width=80, zone=UTC)
    lines = list(chart_lines(timeline(document(span("a", 0, None))), window))
    labels = lines[3].split("  ")
    assert len([label for label in labels if label.strip()]) >= 3
    assert len(lines[3]) <= 80


def test_a_name_is_shortened_in_its_middle() -> None:
    assert shortened("vit-huge-sweep-20261121-17", 12) == "vit-h..21-17"
    assert shortened("short", 12) == "short"
    assert not shortened("short", 3)


@pytest.mark.parametrize(
    "broken",
    [
        {"attempts": [{"job": "a"}]},
        {"attempts": [{"claimed_at": "soon"}]},
        {"attempts": 7},
        {"warm": [{"since": hours(0)}]},
        {"capacity": [{"at": None}]},
        {"since": 5},
    ],
)
def test_a_timeline_of_another_shape_is_an_error_of_ours(broken: dict[str, Any]) -> None:
    with pytest.raises(MalformedViewError, match="in a way this client does not know"):
        timeline(broken)


@pytest.mark.parametrize(
    ("zone", "since", "hours_long", "title"),
    [
        (
            "CET-1CEST,M3.5.0,M10.5.0/3",
            datetime(2026, 10, 25, tzinfo=UTC),
            6,
            "2026-10-25 02:00 CEST to 2026-10-25 07:00 CET",
        ),
        (
            "EST5EDT,M3.2.0,M11.1.0",
            datetime(2026, 11, 1, 4, tzinfo=UTC),
            7,
            "2026-11-01 00:00 EDT to 2026-11-01 06:00 EST",
        ),
    ],
)
def test_C17_each_end_has_its_own_zone_where_the_clocks_change_between(
    zone: str, since: datetime, hours_long: int, title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    until = since + timedelta(hours=hours_long)
    window = Window(since=since, until=until, now=until, width=79)
    first, *_ = chart_lines(timeline(document(attempt_of(since, until))), window)
    monkeypatch.undo()
    time.tzset()
    assert first.partition(",")[0] == title


def attempt_of(since: datetime, until: datetime) -> dict[str, Any]:
    at = {"claimed_at": since.isoformat(), "training_since": since.isoformat(), "ended_at": until.isoformat()}
    return {**span("night", 0, 1), **at}


def test_what_the_clock_is_going_to_change_is_listed_below() -> None:
    reserved = {"vision": {"ml.p5.48xlarge": 1}}
    change = {"at": "2026-12-01T08:00:00.000Z", "pool": "p5", "capacity": {"ml.p5.48xlarge": 2}}
    assert list(
        ahead_lines([change | {"reserved": reserved}, change | {"reserved": {}, "capacity": {}}])
    ) == [
        "Ahead, in the next 7 days:",
        "  p5, from 2026-12-01 08:00 UTC on 2x ml.p5.48xlarge; 1x ml.p5.48xlarge for team vision alone",
        "  p5, from 2026-12-01 08:00 UTC on nothing",
    ]
    assert list(ahead_lines([])) == []
    (_, line) = ahead_lines([change | {"reserved": {}, "plan_capacity": {"ml.p5.48xlarge": 0}}])
    assert line == "  p5, from 2026-12-01 08:00 UTC on 2x ml.p5.48xlarge; on plans 0x ml.p5.48xlarge"
