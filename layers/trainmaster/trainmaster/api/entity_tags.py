"""Entity tags: which answer a client has already. Equal tags mean that no stored field has changed."""

import hashlib
import json
from http import HTTPStatus

from trainmaster import __version__
from trainmaster.api.request_context import Answer, RequestContext

COMPUTED_FOR_SECONDS = 60
"""So old may what is computed be (positions, reasons to wait, costs) in an answer that a client keeps."""
_BYTES = 16


def entity_tag(context: RequestContext, *content: object) -> str:
    """Weak, as what is computed may differ.

    Args:
        context: Who asks, and the policy that the answer rests on.
        content: What was asked, and versions of all that is shown.
    """
    minute = int(context.outside.clock().timestamp()) // COMPUTED_FOR_SECONDS
    sight = [__version__, context.stored.version, context.is_admin, context.teams, minute]
    key = bytes.fromhex(context.stored.seal_key)  # of names of other teams nothing can be tried out
    text = json.dumps([sight, content]).encode()
    return f'W/"{hashlib.blake2b(text, key=key, digest_size=_BYTES, person=b"entity-tag").hexdigest()}"'


def is_known(context: RequestContext, tag: str) -> bool:
    """True when the caller has said that this is what it has."""
    given = context.call.if_none_match.split(",")
    return tag.removeprefix("W/") in {one.strip().removeprefix("W/") for one in given}


def not_modified(tag: str) -> Answer:
    return Answer(status=HTTPStatus.NOT_MODIFIED, body="", content_type="", headers={"ETag": tag})
