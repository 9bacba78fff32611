"""The federal base: bills, people, votes, laws and rules of the United States, with citations."""

from readingroom.bases.federal.settings import FederalSettings
from readingroom.protocol.spec import BaseSpec, Lazy

SPEC = BaseSpec(
    name="federal",
    port=8000,
    open=Lazy("readingroom.bases.federal.tools:open_base"),
    settings=FederalSettings,
    josh_auth=True,
    routes=Lazy("readingroom.bases.federal.routes:make_routers"),
    adapter=Lazy("readingroom.bases.federal.adapter:FederalAdapter"),
    cli=Lazy("readingroom.bases.federal.cli:federal"),
    backup=Lazy("readingroom.bases.federal.backup:BACKUP"),
    doctor=Lazy("readingroom.bases.federal.doctor:check"),
    sample=Lazy("readingroom.bases.federal.sample:SAMPLE"),
)
