"""Parses untrusted YAML: without aliases, and quicker than the library builds its values."""

import re
from typing import Any

import yaml

# What looks like an anchor: only a file that has one is parsed twice.
_YAML_ANCHOR_PATTERN = re.compile(rb"(?:^|[\s\[{,:-])&\w")
# libyaml is ten times as fast.
_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SPECIAL_SCALARS = frozenset(("<<", "="))
_NO_KEY = object()


class _UnusualYaml(Exception):
    """The file uses what official files do not, and the library has to construct it."""


def parse_yaml(yaml_bytes: bytes) -> Any:
    """Parse YAML, refusing aliases: a few lines of them can expand to gigabytes."""
    if _YAML_ANCHOR_PATTERN.search(yaml_bytes):
        yaml_events = yaml.parse(yaml_bytes, Loader=_YAML_LOADER)
        if any(isinstance(yaml_event, yaml.AliasEvent) for yaml_event in yaml_events):
            raise ValueError("the file has YAML aliases, which no official file has")
        return yaml.load(yaml_bytes, Loader=_YAML_LOADER)
    yaml_loader = _YAML_LOADER(yaml_bytes)
    try:
        return _construct_document(yaml_loader)
    except _UnusualYaml:
        return yaml.load(yaml_bytes, Loader=_YAML_LOADER)
    finally:
        yaml_loader.dispose()


def _construct_document(yaml_loader: Any) -> Any:
    """Return the one document of a file, built while it is parsed, with no tree of nodes.

    Raise `_UnusualYaml` for tags, aliases, merged or composite keys, and for several documents.
    """
    value_by_scalar_text = _PlainScalars(yaml_loader)
    yaml_documents: list[Any] = []
    open_containers: list[Any] = [yaml_documents]
    # The key that waits for its value, of each open mapping.
    pending_keys: list[Any] = [_NO_KEY]
    while not isinstance(yaml_event := yaml_loader.get_event(), yaml.StreamEndEvent):
        event_type = type(yaml_event)
        if event_type is yaml.ScalarEvent:
            built_value = (
                value_by_scalar_text[yaml_event.value]
                if yaml_event.implicit[0]
                else yaml_event.value
            )
        elif event_type is yaml.MappingStartEvent:
            built_value = {}
        elif event_type is yaml.SequenceStartEvent:
            built_value = []
        elif event_type is yaml.AliasEvent:
            raise _UnusualYaml
        else:
            if event_type is yaml.MappingEndEvent or event_type is yaml.SequenceEndEvent:
                open_containers.pop()
                pending_keys.pop()
            continue
        if yaml_event.tag is not None:
            raise _UnusualYaml
        open_container = open_containers[-1]
        if type(open_container) is list:
            open_container.append(built_value)
        elif pending_keys[-1] is _NO_KEY:
            if event_type is not yaml.ScalarEvent:
                raise _UnusualYaml
            pending_keys[-1] = built_value
        else:
            open_container[pending_keys[-1]] = built_value
            pending_keys[-1] = _NO_KEY
        if event_type is not yaml.ScalarEvent:
            open_containers.append(built_value)
            pending_keys.append(_NO_KEY)
    if len(yaml_documents) != 1:
        raise _UnusualYaml
    return yaml_documents[0]


class _PlainScalars(dict[str, Any]):
    """What unquoted scalars mean, each found out once: text, a number, a date, a yes or no."""

    def __init__(self, yaml_loader: Any) -> None:
        self._loader = yaml_loader

    def __missing__(self, scalar_text: str) -> Any:
        if scalar_text in _SPECIAL_SCALARS:
            raise _UnusualYaml
        scalar_value: Any = scalar_text
        # Only what begins like a number, a date or a word for yes, no and nothing may be one.
        if scalar_text[:1] in self._loader.yaml_implicit_resolvers:
            scalar_tag = self._loader.resolve(yaml.ScalarNode, scalar_text, (True, False))
            scalar_value = self._loader.construct_object(yaml.ScalarNode(scalar_tag, scalar_text))
        self[scalar_text] = scalar_value
        return scalar_value
