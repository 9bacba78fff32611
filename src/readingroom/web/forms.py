"""Forms that change a record: what was changed in them, and what others changed meanwhile.

A form carries what each field showed in a hidden field `shown_…`. Only the fields that differ from
it are written, so that whoever saves one field does not undo what others saved in another.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from readingroom.core.errors import RecordChanged

_SHOWN_VALUE_PREFIX = "shown_"
_MAX_QUOTED_CHARS = 200


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form that changes a record."""

    name: str
    stored_value: str
    """What the record has."""
    value: str
    """What stands in the field: of a form that was refused, what was typed."""

    @property
    def shown_field_name(self) -> str:
        """The name of the hidden field that says what was shown."""
        return f"{_SHOWN_VALUE_PREFIX}{self.name}"


def fill_form(
    form_values: Mapping[str, str], stored_values: Mapping[str, Any], *, is_form_refused: bool
) -> dict[str, FormField]:
    """Return the fields of a form by their names; one that was refused keeps what was typed."""
    typed_text_by_field_name = (
        _find_changed_values(form_values, stored_values) if is_form_refused else {}
    )
    form_fields = {}
    for field_name, stored_value in stored_values.items():
        stored_text = _format_stored_value(stored_value)
        field_text = typed_text_by_field_name.get(field_name, stored_text)
        form_fields[field_name] = FormField(field_name, stored_text, field_text)
    return form_fields


def read_changed_values(
    form_values: Mapping[str, str], stored_values: Mapping[str, Any]
) -> dict[str, str]:
    """Return the fields of a form that were changed since it was shown, with their new values.

    Raise `RecordChanged` where somebody else has written something else to one of them since.
    """
    new_text_by_field_name = _find_changed_values(form_values, stored_values)
    field_problems = []
    for field_name, typed_text in new_text_by_field_name.items():
        stored_text = _normalise_line_ends(_format_stored_value(stored_values[field_name]))
        shown_text = form_values.get(f"{_SHOWN_VALUE_PREFIX}{field_name}")
        if shown_text is not None and stored_text not in (
            _normalise_line_ends(shown_text),
            _normalise_line_ends(typed_text),
        ):
            field_problems.append(
                {"field": field_name, "message": f"is now “{stored_text[:_MAX_QUOTED_CHARS]}”"}
            )
    if field_problems:
        raise RecordChanged(field_problems)
    return new_text_by_field_name


def _find_changed_values(
    form_values: Mapping[str, str], field_names: Iterable[str]
) -> dict[str, str]:
    """Return what was typed; a field of which nobody says what it showed counts as changed."""
    new_text_by_field_name = {}
    for field_name in field_names:
        shown_text = form_values.get(f"{_SHOWN_VALUE_PREFIX}{field_name}")
        typed_text = form_values.get(field_name)
        if typed_text is not None and (
            shown_text is None
            or _normalise_line_ends(shown_text) != _normalise_line_ends(typed_text)
        ):
            new_text_by_field_name[field_name] = typed_text.strip()
    return new_text_by_field_name


def _format_stored_value(stored_value: Any) -> str:
    return "" if stored_value is None else str(stored_value)


def _normalise_line_ends(field_text: str) -> str:
    # Browsers send the lines of a text with CRLF, however they are stored.
    return "\n".join(field_text.strip().splitlines())
