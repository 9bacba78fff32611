"""The guidance base: Charity Commission guidance, read live from GOV.UK."""

from readingroom.bases.guidance.settings import GuidanceSettings
from readingroom.protocol.spec import BaseSpec, LazyImport

SPEC = BaseSpec(
    name="guidance",
    port=3004,
    database_support="keeps nothing",
    open=LazyImport("readingroom.bases.guidance.tools:open_base"),
    settings_class=GuidanceSettings,
    serves_stdio=True,
    id_prefix="guidance",
    pages=LazyImport("readingroom.bases.guidance.console_pages:make_pages"),
    adapter=LazyImport("readingroom.bases.guidance.adapter:GuidanceAdapter"),
    cli=LazyImport("readingroom.bases.guidance.cli:guidance"),
    sample=LazyImport("readingroom.bases.guidance.sample:SAMPLE"),
    sample_settings=LazyImport("readingroom.bases.guidance.sample:replace_settings"),
)
