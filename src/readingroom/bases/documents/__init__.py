"""The documents base: documents of planning applications."""

from readingroom.bases.documents.settings import DocumentsSettings
from readingroom.protocol.spec import BaseSpec, LazyImport

SPEC = BaseSpec(
    name="documents",
    port=3002,
    database_support="moves",
    open=LazyImport("readingroom.bases.documents.tools:open_base"),
    settings_class=DocumentsSettings,
    port_setting="document_store_port",
    locks_folder=True,
    id_prefix="doc",
    routes=LazyImport("readingroom.bases.documents.routes:make_routers"),
    pages=LazyImport("readingroom.bases.documents.pages.applications:make_pages"),
    adapter=LazyImport("readingroom.bases.documents.adapter:DocumentsAdapter"),
    cli=LazyImport("readingroom.bases.documents.cli:documents"),
    commands=LazyImport("readingroom.bases.documents.commands:COMMANDS"),
    backup=LazyImport("readingroom.bases.documents.commands:BACKUP"),
    doctor=LazyImport("readingroom.bases.documents.commands:run_doctor"),
    sample=LazyImport("readingroom.bases.documents.sample:SAMPLE"),
)
