"""Parses the XML inside office files: no DTD, no entities, nothing loaded from elsewhere."""

from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from readingroom.ingest.document import Refusal

# Elements inside each other; a word processor writes some dozens.
_MAX_ELEMENT_DEPTH = 1_000


def parse_xml(xml_bytes: bytes) -> Element:
    """Return the root element, all names without their namespaces; raise a `Refusal`."""
    tree_builder = TreeBuilder()
    expat_parser = expat.ParserCreate(namespace_separator="}")
    expat_parser.buffer_text = True
    element_depth = 0

    def start_element(tag_name: str, element_attributes: dict[str, str]) -> None:
        nonlocal element_depth
        element_depth += 1
        if element_depth > _MAX_ELEMENT_DEPTH:
            raise Refusal("extraction_failed", "The file nests its elements too deeply")
        tree_builder.start(
            _strip_namespace(tag_name),
            {
                _strip_namespace(attribute_name): attribute_value
                for attribute_name, attribute_value in element_attributes.items()
            },
        )

    def end_element(tag_name: str) -> None:
        nonlocal element_depth
        element_depth -= 1
        tree_builder.end(_strip_namespace(tag_name))

    expat_parser.StartElementHandler = start_element
    expat_parser.EndElementHandler = end_element
    expat_parser.CharacterDataHandler = tree_builder.data
    # A few nested entities expand to gigabytes, and an external one reads local files.
    expat_parser.StartDoctypeDeclHandler = _raise_on_doctype
    try:
        expat_parser.Parse(xml_bytes, True)
        return tree_builder.close()
    except expat.ExpatError as error:
        raise Refusal(
            "extraction_failed", "The file is damaged: its XML cannot be parsed"
        ) from error


def _strip_namespace(qualified_name: str) -> str:
    return qualified_name.rpartition("}")[2]


def _raise_on_doctype(*_: object) -> None:
    raise Refusal(
        "extraction_failed",
        "The file declares a document type in its XML, which office programs never do and which "
        "can make a reader open other files. Save it again, or save it as PDF",
    )
