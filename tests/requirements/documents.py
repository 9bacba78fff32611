"""Requirements of the documents contract."""

from tests.requirements.model import Requirement

DOCUMENTS = (
    Requirement(
        "documents:corpus",
        "Every real file has a specified outcome through a real client, the server lives on, and "
        "its memory does not grow over three repeats.",
    ),
    Requirement(
        "documents:crash",
        "A kill at any step of an ingest or a removal leaves no registry entry without its chunks "
        "and no chunks without an entry, and ingesting again heals.",
    ),
    Requirement(
        "documents:kinds",
        "The kind of a document is found from its title, its words and its title block, with its "
        "name hidden, for at least 85 of 100.",
    ),
    Requirement(
        "documents:contained",
        "The files inside a message or an archive become documents of the same application, each "
        "with an outcome of its own; pages without text are told.",
    ),
    Requirement(
        "documents:doctor",
        "The doctor compares registry, chunks, indexes and files, and mends what can be mended.",
    ),
    Requirement(
        "documents:ingest:idempotent",
        "The same bytes under the same reference answer already_ingested "
        "with the document's id and a message.",
    ),
    Requirement(
        "documents:ingest:type",
        "An explicit document_type wins over the classification.",
    ),
    Requirement(
        "documents:ingest:hash",
        "A document's identity is its SHA-256, "
        "and its id the sanitised reference with six hex digits.",
    ),
    Requirement(
        "documents:search:shape",
        "A search answers status, query, results_count and results, "
        "each with chunk_id, text, relevance_score and the ten metadata fields.",
    ),
    Requirement(
        "documents:search:filters",
        "application_ref and document_types restrict the results, "
        "alone or together, to ten unless max_results asks otherwise.",
    ),
    Requirement(
        "documents:text",
        "get_document_text gives the whole text in order, "
        "no overlap repeated, or tells document_not_found or no_chunks.",
    ),
    Requirement(
        "documents:text:fields",
        "get_document_text also answers file_path, document_type and chunk_count.",
    ),
    Requirement(
        "documents:list",
        "The list answers application_ref, document_count and documents with seven "
        "fields each; an application without any gives 0 and an empty list, not an error.",
    ),
    Requirement("documents:pages", 'Each chunk knows the pages it spans, written as "14,15".'),
    Requirement(
        "documents:store",
        "A PersistentClient without telemetry, or memory when there is no directory, "
        "holds application_docs and document_registry, whose embeddings are 384 zeros.",
    ),
    Requirement("documents:ids", "Chunk ids are {ref}_{hash6}_{page:03d}_{chunk:03d}."),
    Requirement(
        "documents:metadata",
        "Chunks and registry entries answer exactly the spec's metadata fields.",
    ),
    Requirement(
        "documents:delete",
        "delete_document removes the document's chunks and its registry entry.",
    ),
    Requirement("documents:remove", "A document can be removed by a tool or a command."),
    Requirement(
        "documents:tools",
        "The tools are listed by exact name: ingest_document, "
        "search_application_docs, get_document_text and list_ingested_documents.",
    ),
    Requirement(
        "documents:ingest:success",
        "An ingest answers status, document_id, chunks_created, "
        "extraction_method, contains_drawings, total_chars and total_words.",
    ),
    Requirement(
        "documents:ingest:skipped",
        "An image-based document answers skipped with reason, image_ratio and total_pages.",
    ),
    Requirement(
        "documents:ingest:errors",
        "A failed ingest is told as file_not_found, "
        "unsupported_file_type, extraction_failed, no_content or no_chunks.",
    ),
    Requirement(
        "documents:ingest:formats",
        "Files ending pdf, png, jpg, jpeg, tiff, tif and bmp are accepted.",
    ),
    Requirement(
        "documents:chunks",
        "Chunks are 800 characters with 200 overlapping, split at the spec's "
        "separators in order, each kept at the end of the chunk before it.",
    ),
    Requirement(
        "documents:embedding",
        "MiniLM gives 384 dimensions in batches of 32, loads on first use, "
        "cuts text at 1,024 characters with a warning and raises ValueError on "
        "blank input.",
    ),
    Requirement(
        "documents:config",
        "The five variables of the spec are read, and have its defaults.",
    ),
    Requirement(
        "documents:transport",
        "Served alone, the base answers the spec's endpoints with its auth on port 3002.",
    ),
    Requirement(
        "documents:type:other",
        "An unknown document_type override is refused, and the known ones are named.",
    ),
    Requirement(
        "documents:application",
        "An application has a record of its own, with its validation date.",
    ),
    Requirement(
        "documents:overview",
        "What an application's documents hold can be seen in one call.",
    ),
    Requirement(
        "documents:folder",
        "A whole folder is ingested in one command, with a result for each file.",
    ),
    Requirement("documents:page-image", "A page of a document can be had as an image."),
    Requirement(
        "documents:rest",
        "What the tools do can be done over REST, references travelling as query parameters.",
    ),
    Requirement(
        "documents:paths",
        "A path outside the roots, a link that leads out, a pipe or a device is file_not_found, "
        "and nothing of it is read.",
    ),
)
