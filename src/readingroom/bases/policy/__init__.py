"""The policy base: planning policy as it was in force on a day."""

from readingroom.bases.policy.settings import PolicySettings
from readingroom.protocol.spec import BaseSpec, Lazy

SPEC = BaseSpec(
    name="policy",
    port=3003,
    open=Lazy("readingroom.bases.policy.tools:open_base"),
    settings=PolicySettings,
    port_setting="policy_kb_port",
    folder_locked=True,
    id_prefix="policy",
    routes=Lazy("readingroom.bases.policy.routes:make_routers"),
    adapter=Lazy("readingroom.bases.policy.adapter:PolicyAdapter"),
    cli=Lazy("readingroom.bases.policy.cli:policy"),
    commands=Lazy("readingroom.bases.policy.commands:COMMANDS"),
    backup=Lazy("readingroom.bases.policy.commands:BACKUP"),
    doctor=Lazy("readingroom.bases.policy.commands:check"),
    sample=Lazy("readingroom.bases.policy.sample:SAMPLE"),
)
