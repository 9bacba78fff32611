"""A server that owns the specimen's folder, in a process of its own."""

import sys

from readingroom.commands import dispatch
from readingroom.server.catalogue import OFFERS
from tests.support.specimen import AddNote, offer

OFFERS["specimen"] = offer()
dispatch.COMMANDS[AddNote.name] = AddNote

if __name__ == "__main__":
    # Only now: the commands read the list of bases when they are imported.
    from readingroom.cli import main

    sys.exit(main())
