"""A server that owns the specimen's folder, in a process of its own."""

import sys

from readingroom.bases import BASES
from tests.support.specimen import SPEC

BASES[SPEC.name] = SPEC

if __name__ == "__main__":
    # Imported after the base is in the list: the command's choices are made from it.
    from readingroom.cli import main

    sys.exit(main())
