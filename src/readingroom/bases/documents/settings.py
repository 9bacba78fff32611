"""Settings of the documents base."""

from readingroom.core.settings import CommaSeparatedPaths, RoomSettings, declare_setting


class DocumentsSettings(RoomSettings):
    """What an operator can choose for the documents base."""

    document_store_port: int = declare_setting(
        3002,
        "DOCUMENT_STORE_PORT",
        "The port of the documents base when it is served alone; READINGROOM_PORT beats it.",
        ge=0,
        le=65535,
    )
    chroma_persist_dir: str | None = declare_setting(
        None,
        "CHROMA_PERSIST_DIR",
        "Where the documents base keeps its chunks; by default in the data directory. "
        "Set to the empty string, it keeps everything in memory and forgets it at the end.",
        accepts_empty=True,
        is_used_by_sample=False,
    )
    document_roots: CommaSeparatedPaths | None = declare_setting(
        None,
        "DOCUMENT_ROOTS",
        "Folders that documents may be ingested from; by default the documents inbox and uploads.",
        is_used_by_sample=False,
    )
