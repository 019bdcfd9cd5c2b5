"""Rules about access: roles, images, S3 places, keys, network, debugging."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from trainmaster.core.field_paths import path_text
from trainmaster.core.policy.image_names import Image, parse_image
from trainmaster.core.policy.job_rules import Allowed, GuardMode, Rules
from trainmaster.core.request.validation.fields import values_of
from trainmaster.core.request.validation.sections import Section, elements, section
from trainmaster.core.rules.forms import forms_of
from trainmaster.core.rules.violation import Violation, listed

_KEY_PARTS = 6
_KEY = "key/"


def check_role(body: Section, rules: Rules) -> Iterator[Violation]:
    """Check the role by its full ARN: one of another path, account or partition is another role."""
    rule = rules.roles
    if rule is not None and body.get("RoleArn") not in rule.allow:
        yield Violation(
            rule="roles",
            field="RoleArn",
            message="is not a role that is allowed",
            hint=f"use {listed(rule.allow)}",
            mode=rule.mode,
        )


def check_keys(body: Section, rules: Rules) -> Iterator[Violation]:
    rule = rules.kms_keys
    if rule is None:
        return
    for key in values_of("KmsKeyId", dict(body)):
        if not _is_key_arn(key.value):
            message, hint = (
                "is not a key ARN, so its key is unknown",
                f"give the key ARN: {listed(rule.allow)}",
            )
        elif any(fnmatchcase(key.value, allowed) for allowed in rule.allow):
            continue
        else:
            message, hint = "is not a key that is allowed", f"use {listed(rule.allow)}"
        yield Violation(rule="kms_keys", field=key.field, message=message, hint=hint, mode=rule.mode)


def _is_key_arn(text: str) -> bool:
    """Tell whether a text has the parts of a key ARN, so that the ``*`` of a rule stays within a part."""
    parts = text.split(":")
    return len(parts) == _KEY_PARTS and parts[2] == "kms" and parts[5].startswith(_KEY)


_ALGORITHM = "AlgorithmSpecification"


def check_images(body: Section, rules: Rules) -> Iterator[Violation]:
    rule = rules.images
    if rule is None:
        return
    for reference in values_of("AlgorithmImage", dict(body)):
        image = parse_image(reference.value)
        if image is None:
            yield _against(rule, reference.field, "is not the name of an image")
        elif not any(allowed.allows(image) for allowed in rule.allow):
            yield _against(rule, reference.field, "is not an image that is allowed")
    algorithm = section(body, _ALGORITHM) or {}
    if "TrainingImage" not in algorithm:
        named = "AlgorithmName" if "AlgorithmName" in algorithm else "TrainingImage"
        yield _against(rule, f"{_ALGORITHM}.{named}", "names no image that could be compared")
    for provider in values_of("TrainingRepositoryCredentialsProviderArn", dict(body)):
        yield _against(rule, provider.field, "names a Lambda function, which no list of images allows")


def _against(rule: Allowed[Image], field: str, message: str) -> Violation:
    hint = f"use an image of {listed(rule.allow)}"
    return Violation(rule="images", field=field, message=message, hint=hint, mode=rule.mode)


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
    """Check that each form with several instances names one subnet, which lies in one zone."""
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


_RULES = ("DebugRuleConfigurations", "ProfilerRuleConfigurations")


def check_debugging(body: Section, rules: Rules) -> Iterator[Violation]:
    if rules.debugger_instances is not None:
        for name in _RULES:
            for index, debug_rule in elements(body, name):
                if "InstanceType" in debug_rule:
                    yield Violation(
                        rule="debugger_instances",
                        field=path_text((name, index, "InstanceType")),
                        message="starts an instance of its own, which no pool counts",
                        hint="leave InstanceType out of the rule",
                        mode=rules.debugger_instances,
                    )
    yield from _guarded(body, "RemoteDebugConfig.EnableRemoteDebug", rules.remote_debug, _REMOTE_DEBUG)
    yield from _guarded(
        body, "SessionChainingConfig.EnableSessionTagChaining", rules.session_chaining, _SESSION_CHAINING
    )


_REMOTE_DEBUG = ("remote_debug", "opens a shell in the container, with the rights of the job's role")
_SESSION_CHAINING = ("session_chaining", "passes the caller's session tags on to the role of the job")


def _guarded(
    body: Section, field: str, guard: GuardMode | None, rule_and_message: tuple[str, str]
) -> Iterator[Violation]:
    parent, _, switch = field.partition(".")
    mode, (rule, message) = guard.judges if guard else None, rule_and_message
    if mode is not None and (section(body, parent) or {}).get(switch) is True:
        hint = f"leave {parent} out, or have an admin allow it: rules.{rule}: {{mode: allow}}"
        yield Violation(rule=rule, field=field, message=message, hint=hint, mode=mode)
