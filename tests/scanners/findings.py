"""What scanners find, held against the reasons why each finding stays open."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    scanner: str
    id: str
    on: str
    """A resource of the template, a role, or a package."""
    says: str

    def __str__(self) -> str:
        return f"{self.scanner} {self.id} {self.on}: {self.says}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why findings of one id stay open."""

    scanner: str
    id: str
    on: tuple[str, ...]
    """``*`` stands for any characters."""
    because: str

    def explains(self, finding: Finding) -> bool:
        return (self.scanner, self.id) == (finding.scanner, finding.id) and any(
            fnmatchcase(finding.on, pattern) for pattern in self.on
        )

    def __str__(self) -> str:
        return f"{self.scanner} {self.id} on {', '.join(self.on)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    explained: tuple[tuple[Finding, Reason], ...]
    unexplained: tuple[Finding, ...]
    idle: tuple[Reason, ...]
    """Reasons, or those places of a reason, where nobody finds anything any more."""

    @property
    def ok(self) -> bool:
        return not self.unexplained and not self.idle


def judge(findings: Iterable[Finding], reasons: Collection[Reason]) -> Verdict:
    explained: list[tuple[Finding, Reason]] = []
    unexplained: list[Finding] = []
    for finding in sorted(set(findings)):
        reason = next((one for one in reasons if one.explains(finding)), None)
        if reason is None:
            unexplained.append(finding)
        else:
            explained.append((finding, reason))
    idle = tuple(one for reason in reasons for one in _idle(reason, explained))
    return Verdict(explained=tuple(explained), unexplained=tuple(unexplained), idle=idle)


def _idle(reason: Reason, explained: Iterable[tuple[Finding, Reason]]) -> Iterator[Reason]:
    """The part of it that is about nothing."""
    found = [finding for finding, why in explained if why is reason]
    on = tuple(pattern for pattern in reason.on if not any(fnmatchcase(one.on, pattern) for one in found))
    if on:
        yield replace(reason, on=on)


def of_checkov(report: Any) -> Iterator[Finding]:
    """Of ``checkov --output json``."""
    for part in report if isinstance(report, list) else [report]:
        for one in part["results"]["failed_checks"]:
            yield Finding("checkov", one["check_id"], one["resource"].rpartition(".")[2], one["check_name"])


def of_rights(report: Mapping[str, Mapping[str, Iterable[Any]]]) -> Iterator[Finding]:
    """Of ``rights_program``: by role, by kind of risk, actions."""
    for role, risks in report.items():
        for risk, actions in risks.items():
            for action in actions:
                yield Finding("cloudsplaining", risk, role, str(action))


def of_licences(packages: Iterable[Mapping[str, str]], allowed: Collection[str]) -> Iterator[Finding]:
    """Of ``pip-licenses --format=json``; of several licences each has to be allowed."""
    for package in packages:
        licence = package["License"].strip('"')
        if licence not in allowed:
            yield Finding("licences", "not-listed", package["Name"], licence)


def of_hadolint(report: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield the findings of ``hadolint --format json``."""
    for one in report:
        yield Finding("hadolint", one["code"], one["file"], f"line {one['line']}: {one['message']}")


def of_examples(report: Mapping[str, Iterable[str]]) -> Iterator[Finding]:
    """Yield the findings of ``examples_program``: mistakes by file."""
    for file, mistakes in report.items():
        for mistake in mistakes:
            yield Finding(
                "examples", "no-schema" if mistake.startswith("no schema") else "invalid", file, mistake
            )


def locked_in(text: str) -> Iterator[str]:
    """Each package of a lock file with its version."""
    for line in text.splitlines():
        if line and line[0].isalnum():
            yield line.partition(" ")[0]
