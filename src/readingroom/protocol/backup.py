"""A base copied whole, into files and back: what a backup asks of the owner of its folder."""

from readingroom.protocol.command import Command
from readingroom.protocol.tool import Answer
from readingroom.storage.handover import HandedOver


class Copied(Answer):
    """What a copy holds: `{"policies": 6, "chunks": 174}`."""

    counts: dict[str, int]


class WriteCopy(Command):
    """Write a copy of the whole base where the one who asks finds it."""

    folder: HandedOver


class ReadCopy(Command):
    """Fill an empty base from such a copy."""

    folder: HandedOver
    home: str
    """Where the base's folder will lie when everything is in place."""
    replace: bool = False
    """Whether what is there goes first; it is in a store outside of the folder."""
