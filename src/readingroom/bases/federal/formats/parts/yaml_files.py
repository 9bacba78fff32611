"""Parses untrusted YAML: without aliases, and quicker than the library builds its values."""

import re
from typing import Any

import yaml

_ANCHOR = re.compile(rb"(?:^|[\s\[{,:-])&\w")
# libyaml is ten times as fast.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SPECIAL_SCALARS = frozenset(("<<", "="))
_NO_KEY = object()


class _Unusual(Exception):
    """The file uses what official files do not, and the library has to construct it."""


def load_yaml(yaml_bytes: bytes) -> Any:
    """Parse YAML, refusing aliases: a few lines of them can expand to gigabytes."""
    if _ANCHOR.search(yaml_bytes):
        events = yaml.parse(yaml_bytes, Loader=_LOADER)
        if any(isinstance(event, yaml.AliasEvent) for event in events):
            raise ValueError("the file has YAML aliases, which no official file has")
        return yaml.load(yaml_bytes, Loader=_LOADER)
    loader = _LOADER(yaml_bytes)
    try:
        return _construct(loader)
    except _Unusual:
        return yaml.load(yaml_bytes, Loader=_LOADER)
    finally:
        loader.dispose()


def _construct(loader: Any) -> Any:
    """Return the one document of a file, built while it is parsed, with no tree of nodes.

    Raise `_Unusual` for tags, aliases, merged or composite keys, and for several documents.
    """
    scalars = _PlainScalars(loader)
    documents: list[Any] = []
    containers: list[Any] = [documents]
    # The key that waits for its value, of each open mapping.
    keys: list[Any] = [_NO_KEY]
    while not isinstance(event := loader.get_event(), yaml.StreamEndEvent):
        event_type = type(event)
        if event_type is yaml.ScalarEvent:
            value = scalars[event.value] if event.implicit[0] else event.value
        elif event_type is yaml.MappingStartEvent:
            value = {}
        elif event_type is yaml.SequenceStartEvent:
            value = []
        elif event_type is yaml.AliasEvent:
            raise _Unusual
        else:
            if event_type is yaml.MappingEndEvent or event_type is yaml.SequenceEndEvent:
                containers.pop()
                keys.pop()
            continue
        if event.tag is not None:
            raise _Unusual
        container = containers[-1]
        if type(container) is list:
            container.append(value)
        elif keys[-1] is _NO_KEY:
            if event_type is not yaml.ScalarEvent:
                raise _Unusual
            keys[-1] = value
        else:
            container[keys[-1]] = value
            keys[-1] = _NO_KEY
        if event_type is not yaml.ScalarEvent:
            containers.append(value)
            keys.append(_NO_KEY)
    if len(documents) != 1:
        raise _Unusual
    return documents[0]


class _PlainScalars(dict[str, Any]):
    """What unquoted scalars mean, each found out once: text, a number, a date, a yes or no."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __missing__(self, text: str) -> Any:
        if text in _SPECIAL_SCALARS:
            raise _Unusual
        value: Any = text
        # Only what begins like a number, a date or a word for yes, no and nothing may be one.
        if text[:1] in self._loader.yaml_implicit_resolvers:
            tag = self._loader.resolve(yaml.ScalarNode, text, (True, False))
            value = self._loader.construct_object(yaml.ScalarNode(tag, text))
        self[text] = value
        return value
