"""The documents base: documents of planning applications."""

from readingroom.bases.documents.settings import DocumentsSettings
from readingroom.protocol.spec import BaseSpec, Lazy

SPEC = BaseSpec(
    name="documents",
    port=3002,
    open=Lazy("readingroom.bases.documents.tools:open_base"),
    settings=DocumentsSettings,
    port_setting="document_store_port",
    folder_locked=True,
    id_prefix="doc",
    routes=Lazy("readingroom.bases.documents.routes:make_routers"),
    adapter=Lazy("readingroom.bases.documents.adapter:DocumentsAdapter"),
    cli=Lazy("readingroom.bases.documents.cli:documents"),
    commands=Lazy("readingroom.bases.documents.commands:COMMANDS"),
    backup=Lazy("readingroom.bases.documents.commands:BACKUP"),
    doctor=Lazy("readingroom.bases.documents.commands:run_doctor"),
    sample=Lazy("readingroom.bases.documents.sample:SAMPLE"),
)
