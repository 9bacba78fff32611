"""The federal base: bills, people, votes, laws and rules of the United States, with citations."""

from readingroom.bases.federal.settings import FederalSettings
from readingroom.protocol.spec import BaseSpec, LazyImport

SPEC = BaseSpec(
    name="federal",
    port=8000,
    database_support="moves",
    open=LazyImport("readingroom.bases.federal.tools:open_base"),
    settings_class=FederalSettings,
    follows_josh_auth=True,
    routes=LazyImport("readingroom.bases.federal.routes:make_routers"),
    pages=LazyImport("readingroom.bases.federal.pages.records:make_pages"),
    adapter=LazyImport("readingroom.bases.federal.adapter:FederalAdapter"),
    cli=LazyImport("readingroom.bases.federal.cli:federal"),
    backup=LazyImport("readingroom.bases.federal.backup:BACKUP"),
    doctor=LazyImport("readingroom.bases.federal.doctor:check"),
    sample=LazyImport("readingroom.bases.federal.sample:SAMPLE"),
)
