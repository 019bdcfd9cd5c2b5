"""Where the containers are, and who can talk to them."""

from collections.abc import Iterator

from trainmaster.core.policy.rules import Rules
from trainmaster.core.request.validation.sections import Section, section
from trainmaster.core.rules.forms import forms_of
from trainmaster.core.rules.violation import Violation

_SUBNETS = "VpcConfig.Subnets"


def check_network(body: Section, rules: Rules) -> Iterator[Violation]:
    vpc = section(body, "VpcConfig") or {}
    if rules.vpc_required is not None and not (vpc.get("Subnets") and vpc.get("SecurityGroupIds")):
        yield Violation(
            rule="vpc_required",
            field="VpcConfig",
            message="is required",
            hint="give Subnets and SecurityGroupIds",
            mode=rules.vpc_required,
        )
    switches = (
        ("network_isolation", "EnableNetworkIsolation", rules.network_isolation),
        ("traffic_encryption", "EnableInterContainerTrafficEncryption", rules.traffic_encryption),
    )
    for rule, field, mode in switches:
        if mode is not None and body.get(field) is not True:
            yield Violation(
                rule=rule, field=field, message="is not true", hint=f"set {field} to true", mode=mode
            )
    yield from _one_zone(body, rules)


def _one_zone(body: Section, rules: Rules) -> Iterator[Violation]:
    """A subnet lies in one zone; which one it is needs no looking up."""
    mode = rules.single_az_when_distributed
    wide = [form for form in forms_of(body) if form.instances > 1 and len(form.subnets) != 1]
    if mode is not None and wide:
        subnets = len(wide[0].subnets)
        yield Violation(
            rule="single_az_when_distributed",
            field=_SUBNETS,
            message=f"names {subnets} subnets for {wide[0].instances} instances",
            hint="give exactly one: traffic between zones is slow and billed",
            mode=mode,
        )
