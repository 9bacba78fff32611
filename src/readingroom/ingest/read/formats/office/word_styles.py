"""Styles and automatic numbers of Word documents: what is a heading, and how it is numbered."""

import re
from xml.etree.ElementTree import Element

_HEADING_STYLE_NAME_PATTERN = re.compile(
    r"(?:heading|title|überschrift|titre) ?(?P<level>[1-9])?", re.IGNORECASE
)
# Styles that may be based on each other; a hostile file may name a style as its own base.
_MAX_STYLE_DEPTH = 20
_MAX_LIST_LEVELS = 9
_NO_LIST_ID = "0"
_ROMAN_DIGITS = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc")),
    *((50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)


class Styles:
    """The styles of a document, each with those it is based on."""

    def __init__(self, styles: Element | None) -> None:
        elements = styles.findall("style") if styles is not None else []
        self._styles = {element.get("styleId", ""): element for element in elements}

    def find_heading_level(self, properties: Element | None, style_id: str | None) -> int:
        """Return the level of a heading, from 1 on, or 0 for any other paragraph."""
        properties_chain = [properties, *self.list_properties(style_id)]
        for style in self._list_chain(style_id):
            name_element = style.find("name")
            name_match = _HEADING_STYLE_NAME_PATTERN.fullmatch(
                name_element.get("val", "") if name_element is not None else ""
            )
            if name_match:
                return int(name_match["level"] or 1)
        for source_properties in properties_chain:
            outline = (
                source_properties.find("outlineLvl") if source_properties is not None else None
            )
            level = _to_number(outline.get("val") if outline is not None else None)
            if level is not None and level < _MAX_LIST_LEVELS:
                return level + 1
        return 0

    def breaks_page_before(self, properties: Element | None) -> bool:
        """Whether a paragraph begins a new page by its own setting."""
        setting = properties.find("pageBreakBefore") if properties is not None else None
        return setting is not None and setting.get("val") not in ("0", "false", "off")

    def list_properties(self, style_id: str | None) -> list[Element]:
        """Return the paragraph properties of a style, then those of the styles it is based on."""
        found_properties = (style.find("pPr") for style in self._list_chain(style_id))
        return [properties for properties in found_properties if properties is not None]

    def _list_chain(self, style_id: str | None) -> list[Element]:
        style_chain: list[Element] = []
        while style_id in self._styles and len(style_chain) < _MAX_STYLE_DEPTH:
            style = self._styles[style_id]
            style_chain.append(style)
            base_element = style.find("basedOn")
            style_id = base_element.get("val", "") if base_element is not None else ""
        return style_chain


class Numbering:
    """Counts the paragraphs that Word numbers by itself; their numbers are not in the text."""

    def __init__(self, numbering: Element | None, styles: Styles) -> None:
        self._styles = styles
        self._levels: dict[str, dict[int, Element]] = {}
        self._lists: dict[str, str] = {}
        """Ids of abstract lists by the ids of the lists that paragraphs name."""
        self._counters: dict[str, list[int]] = {}
        if numbering is None:
            return
        for abstract_list in numbering.findall("abstractNum"):
            self._levels[abstract_list.get("abstractNumId", "")] = {
                _to_number(level.get("ilvl")) or 0: level for level in abstract_list.findall("lvl")
            }
        for number_list in numbering.findall("num"):
            abstract_id = number_list.find("abstractNumId")
            if abstract_id is not None:
                self._lists[number_list.get("numId", "")] = abstract_id.get("val", "")

    def make_label(self, properties: Element | None, style_id: str | None) -> str:
        """Return the number of the next paragraph, such as `116.` or `(a)`; "" if it has none."""
        list_id, level_index = self._find_list(properties, style_id)
        levels = self._levels.get(self._lists.get(list_id or "", ""))
        if not list_id or not levels or level_index not in levels:
            return ""
        counters = self._counters.setdefault(
            self._lists[list_id],
            [_get_start(levels.get(index)) - 1 for index in range(_MAX_LIST_LEVELS)],
        )
        counters[level_index] += 1
        for lower_index in range(level_index + 1, _MAX_LIST_LEVELS):
            counters[lower_index] = _get_start(levels.get(lower_index)) - 1
        label_pattern = _get_level_value(levels[level_index], "lvlText")
        if _get_level_value(levels[level_index], "numFmt") in ("bullet", "none"):
            return ""

        def format_level(level_match: re.Match[str]) -> str:
            index = int(level_match[1]) - 1
            number_format = _get_level_value(levels.get(index), "numFmt")
            # A level that was never counted stands for its first number.
            level_number = max(counters[index], _get_start(levels.get(index)))
            return _format_number(level_number, number_format)

        return re.sub(r"%([1-9])", format_level, label_pattern)

    def _find_list(
        self, properties: Element | None, style_id: str | None
    ) -> tuple[str | None, int]:
        for source_properties in (properties, *self._styles.list_properties(style_id)):
            number_properties = (
                source_properties.find("numPr") if source_properties is not None else None
            )
            list_id = number_properties.find("numId") if number_properties is not None else None
            if number_properties is not None and list_id is not None:
                level = number_properties.find("ilvl")
                level_index = _to_number(level.get("val") if level is not None else None) or 0
                return list_id.get("val", _NO_LIST_ID), min(level_index, _MAX_LIST_LEVELS - 1)
        return None, 0


def _get_level_value(level: Element | None, child_tag: str) -> str:
    child_element = level.find(child_tag) if level is not None else None
    return child_element.get("val", "") if child_element is not None else ""


def _get_start(level: Element | None) -> int:
    start_number = _to_number(_get_level_value(level, "start"))
    return 1 if start_number is None else start_number


def _format_number(list_number: int, number_format: str) -> str:
    match number_format:
        case "lowerLetter" | "upperLetter":
            # Word goes on with aa, bb, cc after z.
            list_letters = chr(ord("a") + (list_number - 1) % 26) * min(
                1 + (list_number - 1) // 26, 5
            )
            return list_letters.upper() if number_format == "upperLetter" else list_letters
        case "lowerRoman" | "upperRoman":
            numeral = _format_roman(list_number)
            return numeral.upper() if number_format == "upperRoman" else numeral
        case "decimalZero":
            return f"{list_number:02d}"
    return str(list_number)


def _format_roman(list_number: int) -> str:
    if not 0 < list_number < 4000:
        return str(list_number)
    numeral = ""
    for digit_value, roman_digits in _ROMAN_DIGITS:
        numeral += roman_digits * (list_number // digit_value)
        list_number %= digit_value
    return numeral


def _to_number(digits: str | None) -> int | None:
    return int(digits) if digits and re.fullmatch(r"\d{1,9}", digits) else None
