"""The text base: one plain text, whole."""

from readingroom.bases.text.settings import TextSettings
from readingroom.protocol.spec import BaseSpec, Flag, Lazy

SPEC = BaseSpec(
    name="text",
    port=3001,
    open=Lazy("readingroom.bases.text.tools:open_base"),
    settings=TextSettings,
    flags=(Flag("--file", "kb_file", "The text base's file [KB_FILE]."),),
    stdio=True,
    id_prefix="text",
    adapter=Lazy("readingroom.bases.text.adapter:TextAdapter"),
    doctor=Lazy("readingroom.bases.text.doctor:check"),
)
