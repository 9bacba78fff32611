"""Parses the XML inside office files: no DTD, no entities, nothing loaded from elsewhere."""

from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from readingroom.ingest.document import Refusal

# Elements inside each other; a word processor writes some dozens.
_MAX_DEPTH = 1_000


def parse_xml(xml_bytes: bytes) -> Element:
    """Return the root element, all names without their namespaces; raise a `Refusal`."""
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    depth = 0

    def start_element(tag_name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise Refusal("extraction_failed", "The file nests its elements too deeply")
        builder.start(
            _strip_namespace(tag_name),
            {
                _strip_namespace(attribute_name): attribute_value
                for attribute_name, attribute_value in attributes.items()
            },
        )

    def end_element(tag_name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(_strip_namespace(tag_name))

    parser.StartElementHandler = start_element
    parser.EndElementHandler = end_element
    parser.CharacterDataHandler = builder.data
    # A few nested entities expand to gigabytes, and an external one reads local files.
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(xml_bytes, True)
        return builder.close()
    except expat.ExpatError as error:
        raise Refusal(
            "extraction_failed", "The file is damaged: its XML cannot be parsed"
        ) from error


def _strip_namespace(qualified_name: str) -> str:
    return qualified_name.rpartition("}")[2]


def _refuse_doctype(*_: object) -> None:
    raise Refusal(
        "extraction_failed",
        "The file declares a document type in its XML, which office programs never do and which "
        "can make a reader open other files. Save it again, or save it as PDF",
    )
