"""The forms of our pages as a browser reads them."""

from html.parser import HTMLParser


class _FormReader(HTMLParser):
    """Collects the fields of the form that is sent to one address."""

    def __init__(self, action: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._action = action
        self._is_inside = False
        self._open_name = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        name = attributes.get("name", "")
        if tag == "form":
            self._is_inside = attributes.get("action") == self._action
        if not self._is_inside:
            return
        if tag == "input" and attributes.get("type") != "file":
            self.fields[name] = attributes.get("value", "")
        elif tag in ("textarea", "select"):
            self._open_name = name
            self.fields[name] = ""
        elif tag == "option" and "selected" in attributes:
            self.fields[self._open_name] = attributes["value"]

    def handle_data(self, data: str) -> None:
        if self._is_inside and self.lasttag == "textarea" and self._open_name:
            # As browsers send what has several lines.
            self.fields[self._open_name] += "\r\n".join(data.split("\n"))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("textarea", "select"):
            self._open_name = ""
        elif tag == "form":
            self._is_inside = False


def read_form(html: str, action: str) -> dict[str, str]:
    """The fields of the form that is sent to this address, as they are shown."""
    reader = _FormReader(action)
    reader.feed(html)
    return reader.fields
