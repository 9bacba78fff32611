"""Cutting text into chunks, beside the splitter that the contracts name."""

import time
from statistics import median

from langchain_text_splitters import RecursiveCharacterTextSplitter

from benchmarks.table import Ratio, Table
from readingroom.engine.chunking import (
    CHUNK_OVERLAP_LENGTH,
    CHUNK_SEPARATORS,
    CHUNK_SIZE,
    split_into_spans,
)
from tests.ingest.test_ocr import TEXT

TARGET = 1.0
_NOTE = (
    "Processor time for {megabytes:.1f} MB of paragraphs, ours with exact offsets. Median of "
    "{rounds} rounds in which both take turns; the chunks are checked to be equal. Ratio: to "
    "LangChain's in the same round, median (lowest to highest)."
)


def measure(rounds: int) -> Table:
    """Cut the same text with both, in turns."""
    text = "\n\n".join(f"{number}. {TEXT}" for number in range(1500))
    langchain_splitter = RecursiveCharacterTextSplitter(
        chunk_size=CHUNK_SIZE,
        chunk_overlap=CHUNK_OVERLAP_LENGTH,
        separators=[*CHUNK_SEPARATORS, ""],
        keep_separator="end",
    )
    our_seconds: list[float] = []
    peer_seconds: list[float] = []
    for _ in range(rounds):
        began = time.process_time()
        spans = split_into_spans(text)
        between = time.process_time()
        chunks = langchain_splitter.split_text(text)
        peer_seconds.append(time.process_time() - between)
        our_seconds.append(between - began)
        assert [span.cut_from(text) for span in spans] == chunks
    ratio = Ratio(our_seconds, peer_seconds)
    megabytes = len(text) / 1e6
    return Table(
        "Cutting text into chunks",
        ("splitter", "MB a second", "ratio", "target"),
        (
            (
                "LangChain",
                f"{megabytes / median(peer_seconds):.1f}",
                str(Ratio(peer_seconds, peer_seconds)),
                "",
            ),
            (
                "Reading Room",
                f"{megabytes / median(our_seconds):.1f}",
                str(ratio),
                ratio.against(TARGET),
            ),
        ),
        _NOTE.format(megabytes=megabytes, rounds=rounds),
    )
