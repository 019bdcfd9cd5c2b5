"""``trainmaster policy diff --replay``: the account's jobs under the policy in force and another one."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from trainmaster.core.jobs.spans import length

from trainmaster_client.cli.connection import CommandApi
from trainmaster_client.cli.screen import busy
from trainmaster_client.cli.written_files import write_text
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.jobs.instants import instant
from trainmaster_client.simulate.comparison.summaries import summary
from trainmaster_client.simulate.io.policy_replay import period_up_to, replay_policy
from trainmaster_client.simulate.sources.account_export import Period

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedReplay:
    name: str
    """Label of the new document."""
    period: Period
    html: Path | None

    @classmethod
    def of(cls, text: str, *, name: str, html: Path | None) -> "AskedReplay":
        """Raises InvalidArgumentError."""
        now = datetime.now(UTC)
        period = period_up_to(now, now - instant(text, now=now, option="--replay"))
        return cls(name=name, period=period, html=html)

    def replayed(self, api: CommandApi, new: Mapping[str, Any]) -> list[str]:
        """Replay and return the summary's lines; the whole report goes to its file.

        Raises InvalidArgumentError where the stack has less history than was asked for.
        """
        with busy("Replaying the account's jobs"):
            run = replay_policy(api, (self.name, new), self.period, doing=lambda _doing, _share: None)
        if not run.is_whole:
            there, wanted = self.period.until - run.since, self.period.until - self.period.since
            raise InvalidArgumentError(
                f"The history of this stack begins at {run.since:%Y-%m-%d %H:%M} UTC, {length(there)} ago; "
                f"--replay asks for {length(wanted)}.",
                hint=f"Give what there is: --replay {max(there // _HOUR, 1)}h.",
            )
        if self.html is not None:
            page = run.report(command=shlex.join(["trainmaster", *sys.argv[1:]]))
            write_text(self.html, page, option="--html")
        return summary(run.comparison)

    @property
    def closing(self) -> Iterator[str]:
        yield "What a replay cannot know is in its report, and in docs/simulate.md."
        if self.html is not None:
            yield f"Open {self.html} in a browser."
