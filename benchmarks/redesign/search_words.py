"""Searches 20,000 made-up chunks by words and prints the processor seconds of one search.

Run by `redesign/tables.py` with the source tree of either version.
"""

import random
import sys
import time
from pathlib import Path

from readingroom.core.filters import Fields
from readingroom.engine import lexical

CHUNKS = 20_000
SEARCHES = 20
random_source = random.Random(17)
words = [f"w{number}" for number in range(5_000)]
weights = [1 / (rank + 10) for rank in range(len(words))]  # as in natural text, few are common


def make_text(count: int) -> str:
    return " ".join(random_source.choices(words, weights, k=count))


document_class = getattr(lexical, "Document", None) or vars(lexical)["LexicalDocument"]
index = lexical.LexicalIndex(Path(sys.argv[1]) / "words.db", {"text": 1.0}, Fields())
index.fill((document_class(str(row), {"text": make_text(120)}, {}) for row in range(CHUNKS)), 1)
questions = [make_text(4) for _ in range(SEARCHES)]
index.search(questions[0], 100)

before = time.process_time()
for question in questions:
    assert len(index.search(question, 100)) == 100
print((time.process_time() - before) / SEARCHES)
