"""What callers see of paused starts: AWS's words stay within the team that they are about."""

from dataclasses import replace

from trainmaster.api.pool_list import pause_views

from tests.properties.test_start_pauses import paused

ROLE = paused(is_due=False)


def test_an_admin_and_the_team_read_the_role_and_aws_s_words() -> None:
    whole = {
        "role_arn": "arn:aws:iam::1:role/r",
        "launcher_role": None,
        "since": "2026-11-02T11:51:00.000Z",
        "code": "AccessDeniedException",
        "message": "AccessDeniedException: no",
        "next_probe_at": "2026-11-02T12:01:00.000Z",
    }
    assert pause_views([ROLE], teams=None) == pause_views([ROLE], teams=("vision",)) == [whole]


def test_other_teams_read_the_code_alone() -> None:
    (view,) = pause_views([ROLE], teams=("speech",))
    assert (view["role_arn"], view["message"], view["code"]) == (None, None, "AccessDeniedException")


def test_a_role_without_a_pause_is_not_shown() -> None:
    assert pause_views([replace(ROLE, pause=None)], teams=None) == []
