"""Asks the person at a client for leave, where the client declares that it can (elicitation)."""

import logging

import mcp_types as wire
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp_types.version import is_version_at_least

from readingroom.protocol.tool import AskPerson, assume_consent
from readingroom.server.mcp.calls import RequestContext

logger = logging.getLogger(__name__)

_CONSENT_QUESTION_ID = "consent"
_FIRST_VERSION_WITHOUT_SERVER_REQUESTS = "2026-07-28"
"""From this version of the protocol on, a server asks in its result, and is called once more."""
# Nothing to fill in: to accept is to agree.
_EMPTY_FORM_SCHEMA = {"type": "object", "properties": {}}


class ConsentRequired(Exception):
    """The client has to ask its user, and then call the tool again with the response."""

    def __init__(self, consent_question: str) -> None:
        super().__init__(consent_question)
        elicit_request = wire.ElicitRequest(
            params=wire.ElicitRequestFormParams(
                message=consent_question, requested_schema=_EMPTY_FORM_SCHEMA
            )
        )
        self.result = wire.InputRequiredResult(
            input_requests={_CONSENT_QUESTION_ID: elicit_request}
        )


def make_person_asker(
    request_context: RequestContext, request_params: wire.CallToolRequestParams
) -> AskPerson:
    """Return how a tool asks the person at this client; the function raises ConsentRequired where
    the response comes with a second call.
    """
    if not _can_client_ask(request_context):
        return assume_consent
    protocol_version = request_context.session.protocol_version
    if protocol_version and is_version_at_least(
        protocol_version, _FIRST_VERSION_WITHOUT_SERVER_REQUESTS
    ):

        async def read_consent(consent_question: str) -> bool:
            # Nothing is kept between the two calls: a client that makes the response up could as
            # well have declared that it cannot ask.
            elicit_response = (request_params.input_responses or {}).get(_CONSENT_QUESTION_ID)
            if elicit_response is None:
                raise ConsentRequired(consent_question)
            return (
                isinstance(elicit_response, wire.ElicitResult)
                and elicit_response.action == "accept"
            )

        return read_consent

    async def request_consent(consent_question: str) -> bool:
        try:
            elicit_response = await request_context.session.elicit_form(
                consent_question, _EMPTY_FORM_SCHEMA, request_context.request_id
            )
        except NoBackChannelError:
            # It declared what this connection cannot carry: then it is as one that cannot ask.
            return True
        except MCPError as error:
            # Whether the person saw the question is not known, and removing cannot be undone.
            logger.warning("A client that declares elicitation refused it: %s", error)
            return False
        return elicit_response.action == "accept"

    return request_consent


def _can_client_ask(request_context: RequestContext) -> bool:
    """Whether the client shows forms: one that names no mode does, one for addresses only not."""
    client_capabilities = request_context.session.client_capabilities
    elicitation_capability = client_capabilities.elicitation if client_capabilities else None
    return elicitation_capability is not None and (
        elicitation_capability.form is not None or elicitation_capability.url is None
    )
