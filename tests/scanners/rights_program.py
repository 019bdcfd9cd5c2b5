"""Run by the scanners' own Python: policies of roles on stdin; on stdout what cloudsplaining says of them."""

import json
import sys

from cloudsplaining.scan.policy_document import PolicyDocument  # type: ignore[import-not-found]  # of .venv-scan

RISKS = {
    "privilege-escalation": "allows_privilege_escalation",
    "permissions-management": "permissions_management_without_constraints",
    "infrastructure-modification": "infrastructure_modification",
    "data-exfiltration": "allows_data_exfiltration_actions",
    "credentials-exposure": "credentials_exposure",
    "service-wildcard": "service_wildcard",
}

found = {}
for role, policy in json.load(sys.stdin).items():
    document = PolicyDocument(policy)
    found[role] = {risk: getattr(document, attribute) for risk, attribute in RISKS.items()}
json.dump(found, sys.stdout)
