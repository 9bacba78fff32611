"""Requirements of the search engine that the bases share."""

from tests.requirements.model import Requirement

ENGINE = (
    Requirement(
        "engine:chunking:cuts",
        "A text is cut where the splitter that the contracts name cuts it.",
    ),
    Requirement(
        "engine:chunking:offsets",
        "A chunk knows its exact place; every word is in one, none is over the size, "
        "neighbours share at most the overlap.",
    ),
    Requirement("engine:chunking:pages", "A chunk knows which pages it touches."),
    Requirement(
        "engine:embedding:equal",
        "Vectors equal those of sentence-transformers to 1e-5, alone or in any batch.",
    ),
    Requirement(
        "engine:embedding:int8",
        "The int8 model gives near vectors under an identity of its own.",
    ),
    Requirement(
        "engine:embedding:input",
        "Blank text raises ValueError; over 1,024 characters it is cut with a warning.",
    ),
    Requirement("engine:embedding:lazy", "Nothing is imported or loaded before the first text."),
    Requirement("engine:embedding:queries", "A question asked again is not embedded again."),
    Requirement(
        "engine:embedding:bulk",
        "In bulk, on a card or not, a text has the token ids and the vector it always has.",
    ),
    Requirement("engine:embedding:progress", "A bulk run says how far it has come."),
    Requirement("engine:embedding:threads", "Threads share one model and get equal vectors."),
    Requirement(
        "engine:embedding:cache",
        "The graph is built once and atomically; a damaged one is noticed and built anew.",
    ),
    Requirement(
        "engine:filters",
        "Equals, in, range and and mean the same to every backend.",
    ),
    Requirement(
        "engine:vectors:exact",
        "A search equals brute force over the stored vectors: ids, scores to 1e-5, ties by id.",
    ),
    Requirement("engine:vectors:writes", "Every write shows in the next search."),
    Requirement(
        "engine:vectors:signs",
        "A scan too large to be exact chooses by signs and finds nearly all the same.",
    ),
    Requirement(
        "engine:vectors:bad-input",
        "Wrong sizes, NaN, unknown fields, k of 0 and beyond are refused or answered, never wrong.",
    ),
    Requirement("engine:vectors:concurrent", "Readers see a write whole or not at all."),
    Requirement(
        "engine:lexical:find",
        "Words are found in any form, titles weigh most, ties come by id.",
    ),
    Requirement("engine:lexical:words", "Empty words are dropped unless a question has no other."),
    Requirement("engine:lexical:safe", "Any text is a question and never query syntax."),
    Requirement(
        "engine:lexical:exact",
        "Within its budget of postings a search ranks exactly as FTS5 does.",
    ),
    Requirement("engine:lexical:filters", "Filters are applied before ranking."),
    Requirement(
        "engine:lexical:budget",
        "Beyond the budget the rarest words choose and all the words rank.",
    ),
    Requirement(
        "engine:lexical:writes",
        "After any writes the index is as if filled anew; a write that fails changes nothing.",
    ),
    Requirement("engine:lexical:bad-input", "Bad questions are refused or find nothing."),
    Requirement("engine:lexical:deadline", "A search has a deadline and says when it is over it."),
    Requirement("engine:lexical:file", "The file is kept, and made anew when it is damaged."),
    Requirement("engine:lexical:concurrent", "Threads search while one writes."),
    Requirement(
        "engine:chunks:verbs",
        "The five verbs put, change, give and count chunks as they are, in batches of any size.",
    ),
    Requirement("engine:chunks:bad-input", "A bad batch is refused and changes nothing."),
    Requirement(
        "engine:chunks:owner",
        "A store directory has one process; a second is refused until the first has gone.",
    ),
    Requirement("engine:chunks:damaged", "A damaged store is told and its folder let go."),
    Requirement(
        "engine:chunks:crash",
        "kill -9 during an upsert loses no acknowledged chunk; the index equals the store.",
    ),
    Requirement(
        "engine:index:search",
        "An index finds by words, by meaning and by both; without a model by words, saying so.",
    ),
    Requirement(
        "engine:index:identity",
        "Vectors of different models or precisions never meet in one collection.",
    ),
    Requirement(
        "engine:index:in-step",
        "After any writes, failures and restarts both indexes agree with the store.",
    ),
    Requirement("engine:index:concurrent", "Readers and a writer share an index."),
    Requirement(
        "engine:own-models",
        "An encoder and a cross-encoder can be named; their vectors meet no others.",
    ),
    Requirement(
        "engine:second-look",
        "A cross-encoder reads the first passages of a search by both once more, if there is one.",
    ),
    Requirement("engine:hybrid", "Words and meaning rank together under one filter."),
    Requirement("engine:confidence", "A score has one meaning, and an answer says how sure it is."),
    Requirement("engine:fusion", "Rankings fuse to one deterministic order, ties by id."),
    Requirement(
        "engine:embedding:weights",
        "Weights come from the named folder, the package, the cache or a checked download; "
        "a missing model is told with the ways to get one.",
    ),
)
