"""The guidance base: Charity Commission guidance, read live from GOV.UK."""

from readingroom.bases.guidance.settings import GuidanceSettings
from readingroom.protocol.spec import BaseSpec, Lazy

SPEC = BaseSpec(
    name="guidance",
    port=3004,
    open=Lazy("readingroom.bases.guidance.tools:open_base"),
    settings=GuidanceSettings,
    stdio=True,
    id_prefix="guidance",
    adapter=Lazy("readingroom.bases.guidance.adapter:GuidanceAdapter"),
    cli=Lazy("readingroom.bases.guidance.cli:guidance"),
    sample_settings=Lazy("readingroom.bases.guidance.sample:replace_settings"),
)
