"""Styles and automatic numbers of Word documents: what is a heading, and how it is numbered."""

import re
from xml.etree.ElementTree import Element

_HEADING_STYLE_NAME_PATTERN = re.compile(
    r"(?:heading|title|überschrift|titre) ?(?P<level>[1-9])?", re.IGNORECASE
)
# Styles that may be based on each other; a hostile file may name a style as its own base.
_MAX_STYLE_DEPTH = 20
_MAX_LIST_LEVELS = 9
_ID_OF_NO_LIST = "0"
_VALUES_AND_ROMAN_DIGITS = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc")),
    *((50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)


class WordStyles:
    """The styles of a document, each with those it is based on."""

    def __init__(self, styles_element: Element | None) -> None:
        style_elements = styles_element.findall("style") if styles_element is not None else []
        self._styles_by_id = {element.get("styleId", ""): element for element in style_elements}

    def determine_heading_level(
        self, properties_element: Element | None, style_id: str | None
    ) -> int:
        """Return the level of a heading, from 1 on, or 0 for any other paragraph."""
        properties_elements = [properties_element, *self.list_properties_elements(style_id)]
        for style_element in self._list_style_and_base_styles(style_id):
            name_element = style_element.find("name")
            name_match = _HEADING_STYLE_NAME_PATTERN.fullmatch(
                name_element.get("val", "") if name_element is not None else ""
            )
            if name_match:
                return int(name_match["level"] or 1)
        for checked_properties_element in properties_elements:
            outline_element = (
                checked_properties_element.find("outlineLvl")
                if checked_properties_element is not None
                else None
            )
            outline_level = _find_number(
                outline_element.get("val") if outline_element is not None else None
            )
            if outline_level is not None and outline_level < _MAX_LIST_LEVELS:
                return outline_level + 1
        return 0

    def breaks_page_before(self, properties_element: Element | None) -> bool:
        """Whether a paragraph begins a new page by its own setting."""
        break_element = (
            properties_element.find("pageBreakBefore") if properties_element is not None else None
        )
        return break_element is not None and break_element.get("val") not in ("0", "false", "off")

    def list_properties_elements(self, style_id: str | None) -> list[Element]:
        """Return the paragraph properties of a style, then those of the styles it is based on."""
        properties_elements = (
            style_element.find("pPr")
            for style_element in self._list_style_and_base_styles(style_id)
        )
        return [
            properties_element
            for properties_element in properties_elements
            if properties_element is not None
        ]

    def _list_style_and_base_styles(self, style_id: str | None) -> list[Element]:
        style_elements: list[Element] = []
        while style_id in self._styles_by_id and len(style_elements) < _MAX_STYLE_DEPTH:
            style_element = self._styles_by_id[style_id]
            style_elements.append(style_element)
            base_element = style_element.find("basedOn")
            style_id = base_element.get("val", "") if base_element is not None else ""
        return style_elements


class ListNumbering:
    """Counts the paragraphs that Word numbers by itself; their numbers are not in the text."""

    def __init__(self, numbering_element: Element | None, word_styles: WordStyles) -> None:
        self._styles = word_styles
        self._levels_by_abstract_list: dict[str, dict[int, Element]] = {}
        self._abstract_list_by_list: dict[str, str] = {}
        """Ids of abstract lists by the ids of the lists that paragraphs name."""
        self._counters_by_list: dict[str, list[int]] = {}
        if numbering_element is None:
            return
        for abstract_list_element in numbering_element.findall("abstractNum"):
            self._levels_by_abstract_list[abstract_list_element.get("abstractNumId", "")] = {
                _find_number(level_element.get("ilvl")) or 0: level_element
                for level_element in abstract_list_element.findall("lvl")
            }
        for list_element in numbering_element.findall("num"):
            abstract_id_element = list_element.find("abstractNumId")
            if abstract_id_element is not None:
                self._abstract_list_by_list[list_element.get("numId", "")] = (
                    abstract_id_element.get("val", "")
                )

    def make_next_label(self, properties_element: Element | None, style_id: str | None) -> str:
        """Return the number of the next paragraph, such as `116.` or `(a)`; "" if it has none."""
        list_id, level_index = self._find_list_id_and_level(properties_element, style_id)
        level_elements_by_index = self._levels_by_abstract_list.get(
            self._abstract_list_by_list.get(list_id or "", "")
        )
        if not list_id or not level_elements_by_index or level_index not in level_elements_by_index:
            return ""
        level_counters = self._counters_by_list.setdefault(
            self._abstract_list_by_list[list_id],
            [
                _get_start_number(level_elements_by_index.get(level_number_index)) - 1
                for level_number_index in range(_MAX_LIST_LEVELS)
            ],
        )
        level_counters[level_index] += 1
        for lower_index in range(level_index + 1, _MAX_LIST_LEVELS):
            level_counters[lower_index] = (
                _get_start_number(level_elements_by_index.get(lower_index)) - 1
            )
        label_pattern = _get_level_value(level_elements_by_index[level_index], "lvlText")
        if _get_level_value(level_elements_by_index[level_index], "numFmt") in ("bullet", "none"):
            return ""

        def format_level(level_match: re.Match[str]) -> str:
            named_level_index = int(level_match[1]) - 1
            number_format = _get_level_value(
                level_elements_by_index.get(named_level_index), "numFmt"
            )
            # A level that was never counted stands for its first number.
            level_number = max(
                level_counters[named_level_index],
                _get_start_number(level_elements_by_index.get(named_level_index)),
            )
            return _format_number(level_number, number_format)

        return re.sub(r"%([1-9])", format_level, label_pattern)

    def _find_list_id_and_level(
        self, properties_element: Element | None, style_id: str | None
    ) -> tuple[str | None, int]:
        for checked_properties_element in (
            properties_element,
            *self._styles.list_properties_elements(style_id),
        ):
            numbering_properties_element = (
                checked_properties_element.find("numPr")
                if checked_properties_element is not None
                else None
            )
            list_id_element = (
                numbering_properties_element.find("numId")
                if numbering_properties_element is not None
                else None
            )
            if numbering_properties_element is not None and list_id_element is not None:
                level_element = numbering_properties_element.find("ilvl")
                level_index = (
                    _find_number(level_element.get("val") if level_element is not None else None)
                    or 0
                )
                return list_id_element.get("val", _ID_OF_NO_LIST), min(
                    level_index, _MAX_LIST_LEVELS - 1
                )
        return None, 0


def _get_level_value(level_element: Element | None, child_tag: str) -> str:
    child_element = level_element.find(child_tag) if level_element is not None else None
    return child_element.get("val", "") if child_element is not None else ""


def _get_start_number(level_element: Element | None) -> int:
    start_number = _find_number(_get_level_value(level_element, "start"))
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
            roman_numeral = _format_roman(list_number)
            return roman_numeral.upper() if number_format == "upperRoman" else roman_numeral
        case "decimalZero":
            return f"{list_number:02d}"
    return str(list_number)


def _format_roman(list_number: int) -> str:
    if not 0 < list_number < 4000:
        return str(list_number)
    roman_numeral = ""
    for roman_digit_value, roman_digits in _VALUES_AND_ROMAN_DIGITS:
        roman_numeral += roman_digits * (list_number // roman_digit_value)
        list_number %= roman_digit_value
    return roman_numeral


def _find_number(digit_text: str | None) -> int | None:
    return int(digit_text) if digit_text and re.fullmatch(r"\d{1,9}", digit_text) else None
