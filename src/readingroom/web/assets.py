"""The style sheet, the scripts and the icon of the pages, under addresses that change with them."""

import base64
import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ASSETS_FOLDER = Path(__file__).parent / "assets"
_MEDIA_TYPE_BY_SUFFIX = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
ASSET_PREFIX = "/assets/"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages load."""

    address: str
    """With a digest of its content, so that browsers may keep it for good."""
    media_type: str
    content: bytes
    compressed_content: bytes
    """The same with gzip."""


def get_asset_address(file_name: str) -> str:
    """Return the address of a file in `web/assets`."""
    return _load_assets_by_name()[file_name].address


def make_icon_uri() -> str:
    """Return the icon as a `data:` URI."""
    icon_asset = _load_assets_by_name()["icon.svg"]
    # In base64: as text, the quotes of the drawing would need escapes.
    return f"data:{icon_asset.media_type};base64,{base64.b64encode(icon_asset.content).decode()}"


@cache
def load_assets() -> dict[str, Asset]:
    """Return every asset by its address."""
    return {web_asset.address: web_asset for web_asset in _load_assets_by_name().values()}


@cache
def _load_assets_by_name() -> dict[str, Asset]:
    return {
        asset_path.name: _load_asset(asset_path)
        for asset_path in sorted(_ASSETS_FOLDER.iterdir())
        if asset_path.suffix in _MEDIA_TYPE_BY_SUFFIX
    }


def _load_asset(asset_path: Path) -> Asset:
    content_bytes = asset_path.read_bytes()
    content_digest = hashlib.sha256(content_bytes).hexdigest()[:16]
    return Asset(
        address=f"{ASSET_PREFIX}{content_digest}/{asset_path.name}",
        media_type=_MEDIA_TYPE_BY_SUFFIX[asset_path.suffix],
        content=content_bytes,
        compressed_content=gzip.compress(content_bytes, mtime=0),
    )
