"""The text base: one plain text, whole."""

from readingroom.bases.text.settings import TextSettings
from readingroom.protocol.spec import BaseSpec, LazyImport, SettingFlag

SPEC = BaseSpec(
    name="text",
    port=3001,
    database_support="keeps nothing",
    open=LazyImport("readingroom.bases.text.tools:open_base"),
    settings_class=TextSettings,
    flags=(SettingFlag("--file", "kb_file", "The text base's file [KB_FILE]."),),
    serves_stdio=True,
    id_prefix="text",
    adapter=LazyImport("readingroom.bases.text.adapter:TextAdapter"),
    doctor=LazyImport("readingroom.bases.text.doctor:check_text_file"),
)
