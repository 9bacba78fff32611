"""The policy base: planning policy as it was in force on a day."""

from readingroom.bases.policy.settings import PolicySettings
from readingroom.protocol.spec import BaseSpec, LazyImport

SPEC = BaseSpec(
    name="policy",
    port=3003,
    database_support="moves",
    open=LazyImport("readingroom.bases.policy.tools:open_base"),
    settings_class=PolicySettings,
    port_setting="policy_kb_port",
    locks_folder=True,
    id_prefix="policy",
    routes=LazyImport("readingroom.bases.policy.routes:make_routers"),
    pages=LazyImport("readingroom.bases.policy.pages.policies:make_pages"),
    adapter=LazyImport("readingroom.bases.policy.adapter:PolicyAdapter"),
    cli=LazyImport("readingroom.bases.policy.cli:policy"),
    commands=LazyImport("readingroom.bases.policy.commands:COMMANDS"),
    backup=LazyImport("readingroom.bases.policy.commands:BACKUP"),
    doctor=LazyImport("readingroom.bases.policy.commands:run_doctor"),
    sample=LazyImport("readingroom.bases.policy.sample:SAMPLE"),
)
