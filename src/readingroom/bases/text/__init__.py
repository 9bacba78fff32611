"""The text base: one plain text, whole."""

from readingroom.bases.text.settings import TextSettings
from readingroom.protocol.spec import BaseSpec, LazyImport, SettingFlag

SPEC = BaseSpec(
    name="text",
    port=3001,
    on_database="keeps nothing",
    open=LazyImport("readingroom.bases.text.tools:open_base"),
    settings=TextSettings,
    flags=(SettingFlag("--file", "kb_file", "The text base's file [KB_FILE]."),),
    stdio=True,
    id_prefix="text",
    adapter=LazyImport("readingroom.bases.text.adapter:TextAdapter"),
    doctor=LazyImport("readingroom.bases.text.doctor:check"),
)
