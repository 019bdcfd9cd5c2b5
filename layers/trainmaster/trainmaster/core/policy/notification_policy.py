"""The section of the policy that says who is notified."""

from dataclasses import dataclass

from trainmaster.core.policy.findings import Location
from trainmaster.core.policy.keys import Section, key
from trainmaster.core.policy.kinds import Flag, list_of, plain_text

_ADDRESSES_HINT = "write a list of addresses, e.g. [ml-platform@example.com]"
_ADDRESSES = list_of(
    plain_text(
        r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}",
        "is not an e-mail address",
        _ADDRESSES_HINT,
    ),
    _ADDRESSES_HINT,
)
_SUBSCRIBE = "aws sns subscribe --protocol email --topic-arn <mail topic> --notification-endpoint <address>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notifications(Section):
    email: tuple[str, ...] = key(
        _ADDRESSES,
        [],
        "Who should get the stack's e-mails; each address must be subscribed to its mail topic once.",
    )
    events: bool = key(Flag(), True, "Whether events are sent to the account's default event bus.")

    def check(self, at: Location) -> None:
        if self.email:
            message = (
                "each address must be subscribed to the mail topic once and confirm it; trainmaster cannot"
            )
            at.below("email").warn(message, _SUBSCRIBE)
