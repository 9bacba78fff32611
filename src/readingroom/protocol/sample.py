"""Answers from the sample corpus say so: in `_meta`, and wherever they say whose words they are."""

from typing import Any

META = {"sample": True}
MARK = "[sample] "
# Where an answer says what to cite, or whose words it repeats.
_CITED = ("citation", "citation_string", "attribution")


def marked(body: Any) -> Any:
    """The same JSON with every citation in it marked."""
    if isinstance(body, list):
        return [marked(item) for item in body]
    if isinstance(body, dict):
        return {
            name: _marked(value) if name in _CITED and isinstance(value, str) else marked(value)
            for name, value in body.items()
        }
    return body


def _marked(said: str) -> str:
    """Once, however many edges an answer passes."""
    return said if said.startswith(MARK) else MARK + said


def marked_document(body: Any) -> Any:
    """The same for JSON that stands alone, without a protocol that has a place for `_meta`."""
    told = marked(body)
    return {**told, "_meta": META} if isinstance(told, dict) else told
