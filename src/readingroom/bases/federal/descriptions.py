"""What the search tools say of themselves: written for a model that chooses, with live sources."""

from readingroom.bases.federal.sources import Shape, Source, names_of

_REGISTRIES = (
    "Registries (people, offices, committees, votes, hearings, lobbying filings, dockets, topics) "
    "are out of scope here: they hold names, not texts; resolve_entity looks names up."
)


def search(sources: tuple[Source, ...]) -> str:
    return (
        "Search federal documents for a question in words, by words and meaning at once. Pick it "
        "when the question names no identifier; with one (H.R. 1, a bioguide id) use the typed "
        "tools instead. Each result has an id for fetch, a title, a url, a passage and a "
        f"citation. Sources: {_listed(sources, Shape.BODY, Shape.SHORT)}. {_REGISTRIES}"
    )


def lexical_search(sources: tuple[Source, ...]) -> str:
    return (
        "Search federal documents for exact words: names of acts, phrases, rare terms (BM25). "
        "Pick it when the wording matters; it does not find other wordings of the same thing. "
        f"Sources: {_listed(sources, Shape.BODY, Shape.SHORT)}. {_REGISTRIES}"
    )


def semantic_search(sources: tuple[Source, ...]) -> str:
    return (
        "Search federal documents for a meaning, whatever its wording: topics, similar bills. "
        "Pick it for free-text questions without exact terms; it does not match words. Filters "
        f"apply before scoring. Sources: {_listed(sources, Shape.BODY)}. {_REGISTRIES}"
    )


def _listed(sources: tuple[Source, ...], *shapes: Shape) -> str:
    return ", ".join(names_of(source for source in sources if source.shape in shapes))
