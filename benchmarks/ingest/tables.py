"""Ingest: text, isolation, chunking, OCR and sections."""

from collections.abc import Iterator

from benchmarks.ingest import isolation, quality, splitter, text
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    yield text.measure(rounds=1, with_real_files=False) if quick else text.measure(rounds=3)
    yield isolation.measure(rounds=2 if quick else 15)
    yield splitter.measure(rounds=1 if quick else 5)
    yield quality.measure_ocr()
    yield quality.measure_sections()
