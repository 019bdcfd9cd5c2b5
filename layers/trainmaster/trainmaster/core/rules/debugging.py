"""Machines and shells beside the job."""

from collections.abc import Iterator

from trainmaster.core.policy.rules import Rules
from trainmaster.core.request.validation.sections import Section, elements, section
from trainmaster.core.request_errors import path_text
from trainmaster.core.rules.violation import Violation

_RULES = ("DebugRuleConfigurations", "ProfilerRuleConfigurations")


def check_debugging(body: Section, rules: Rules) -> Iterator[Violation]:
    if rules.debugger_instances is not None:
        for name in _RULES:
            for index, one in elements(body, name):
                if "InstanceType" in one:
                    yield Violation(
                        rule="debugger_instances",
                        field=path_text((name, index, "InstanceType")),
                        message="starts an instance of its own, which no pool counts",
                        hint="leave InstanceType out of the rule",
                        mode=rules.debugger_instances,
                    )
    remote = section(body, "RemoteDebugConfig") or {}
    if rules.remote_debug is not None and remote.get("EnableRemoteDebug") is True:
        yield Violation(
            rule="remote_debug",
            field="RemoteDebugConfig.EnableRemoteDebug",
            message="opens a shell in the container",
            hint="leave RemoteDebugConfig out",
            mode=rules.remote_debug,
        )
