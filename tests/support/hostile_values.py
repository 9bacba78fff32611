"""Random values for arguments: some fit their JSON schema, some nearly, some are an attack."""

import random
from collections.abc import Mapping
from typing import Any

KNOWN: dict[str, tuple[Any, ...]] = {
    "query": ("covered cycle parking", "airport noise", "annual return", "a", '"cycle parking"'),
    "q": ("airport", "noise near schools"),
    "id": ("hr:119:1", "policy:NPPF", "text:kb", "guidance:/government/publications/x", "M000133"),
    "bill_id": ("hr:119:1", "s:119:1"),
    "source": ("NPPF", "bills", "policy"),
    "revision_id": ("rev_NPPF_2024_12",),
    "document_id": ("25_01178_REM_000000",),
    "application_ref": ("25/01178/REM",),
    "reference": ("25/01178/REM",),
    "date": ("2024-12-20", "2023-01-01"),
    "effective_date": ("2024-12-20",),
    "section_ref": ("Para 1", "1", "Policy T1"),
    "path": ("/government/publications/charity-reserves",),
    "name": ("Smith", "House Ag"),
}
"""What is likely to be there, by the name of an argument."""

HOSTILE: tuple[Any, ...] = (
    *("", " ", "\x00", "\ud800", "a" * 9000, "٣", "e\u0301" * 400, "\u202e", "\r\nX: y"),
    *("../../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "%2e%2e%2f", "~", "C:\\con"),
    *(
        "' OR 1=1 --",
        '"; DROP TABLE bills; --',
        "NEAR(a b, 9)",
        "col:x*",
        "(((((((",
        "^a",
        "-" * 99,
    ),
    *("*" * 500, '"' * 501, "a AND b OR NOT c", "{}", "[]", "null", "NaN", "1e309", "<script>"),
    *(
        -1,
        0,
        2**31,
        2**63,
        10**400,
        1.5,
        1e308,
        True,
        False,
        None,
        [],
        {},
        [[[[]]]],
        {"a": {"b": 1}},
    ),
    *("0000-00-00", "9999-12-31", "2024-02-30", "2024-12-20T00:00:00Z", ["x"] * 200),
)

Schema = Mapping[str, Any]


class ValueMaker:
    """Makes values from one seed: the same seed makes the same values in the same order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def make_object(self, schema: Schema, definitions: Schema) -> dict[str, Any]:
        """Return arguments for an object schema: its fields, at times one too few or too many."""
        schema = _resolve(schema, definitions)
        required = set(schema.get("required", ()))
        values = {
            name: self.make_value(name, field, definitions)
            for name, field in schema.get("properties", {}).items()
            if self.random.random() < (0.95 if name in required else 0.35)
        }
        if self.random.random() < 0.05:
            values[self.random.choice(("surplus", "", "__proto__", "a" * 500))] = (
                self.make_hostile()
            )
        return values

    def make_value(self, name: str, schema: Schema, definitions: Schema) -> Any:
        """Return a value for one argument."""
        choice = self.random.random()
        if name in KNOWN and choice < 0.5:
            return self.random.choice(KNOWN[name])
        if choice < 0.75:
            return self._make_fitting(_resolve(schema, definitions), definitions)
        return self.make_hostile()

    def make_hostile(self) -> Any:
        return self.random.choice(HOSTILE)

    def _make_fitting(self, schema: Schema, definitions: Schema) -> Any:
        """Return a value that fits a schema, as far as its type, bounds and choices go."""
        for union in ("anyOf", "oneOf", "allOf"):
            if union in schema:
                option = _resolve(self.random.choice(schema[union]), definitions)
                return self._make_fitting(option, definitions)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        match schema.get("type"):
            case "integer" | "number":
                low, high = schema.get("minimum", 0), schema.get("maximum", 1000)
                return self.random.randint(int(low), int(high))
            case "boolean":
                return self.random.random() < 0.5
            case "array":
                items = schema.get("items", {})
                return [
                    self._make_fitting(_resolve(items, definitions), definitions)
                    for _ in range(self.random.randint(0, 3))
                ]
            case "object":
                return self.make_object(schema, definitions)
            case "null":
                return None
        if schema.get("format") == "date":
            return f"20{self.random.randint(10, 40)}-0{self.random.randint(1, 9)}-11"
        words = ("cycle", "parking", "noise", "charity", "x", "2024", "NPPF", "hr:119:1")
        return " ".join(self.random.choices(words, k=self.random.randint(1, 3)))


def _resolve(schema: Schema, definitions: Schema) -> Schema:
    """Return the schema that a reference stands for."""
    if "$ref" in schema:
        return _resolve(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return schema
