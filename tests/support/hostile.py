"""Files made to harm whoever reads them: bombs, lies and knots, each small on disk."""

import struct
import zlib

MEGABYTE = 2**20


def make_pdf(*objects: bytes) -> bytes:
    """A PDF of these objects, numbered from 1; the first is its catalogue."""
    parts = [b"%PDF-1.7\n"]
    offsets = []
    at = len(parts[0])
    for number, body in enumerate(objects, 1):
        part = b"%d 0 obj\n%s\nendobj\n" % (number, body)
        offsets.append(at)
        parts.append(part)
        at += len(part)
    rows = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    count = len(objects) + 1
    parts.append(b"xref\n0 %d\n0000000000 65535 f \n%s" % (count, rows))
    parts.append(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (count, at))
    return b"".join(parts)


def stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), entries, data)


def make_page(content: bytes, *more: bytes, resources: bytes = b"") -> bytes:
    """One page with this content stream; further objects are numbered from 5."""
    return make_pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << %s >> >>" % resources,
        content,
        *more,
    )


def _deflate_zeros(megabytes: int) -> bytes:
    """That much of nothing, compressed a thousandfold: one megabyte, packed once, over and over."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = packer.compress(b" " * MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x78\xda" + block * megabytes + packer.flush()


def make_flate_bomb() -> bytes:
    return make_page(stream(_deflate_zeros(4096), b"/Filter /FlateDecode"))


def make_double_flate() -> bytes:
    twice = zlib.compress(_deflate_zeros(4096), 9)
    return make_page(stream(twice, b"/Filter [/FlateDecode /FlateDecode]"))


def make_nested_forms(depth: int = 12, times: int = 12) -> bytes:
    """Every form draws the next one a dozen times: twelve to the twelfth power in all."""
    forms = [
        stream(
            b"/F Do " * times,
            b"/Type /XObject /Subtype /Form /BBox [0 0 595 842]"
            b" /Resources << /XObject << /F %d 0 R >> >>" % (6 + level),
        )
        for level in range(depth)
    ]
    last = stream(b"0 0 1 1 re f", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9]")
    return make_page(stream(b"/F Do"), *forms, last, resources=b"/XObject << /F 5 0 R >>")


def make_many_operators(count: int = 3_000_000) -> bytes:
    content = zlib.compress(b"1 1 m 2 2 l S " * (count // 3), 9)
    return make_page(stream(content, b"/Filter /FlateDecode"))


def make_many_pages(count: int = 200_000) -> bytes:
    kids = b" ".join(b"%d 0 R" % number for number in range(3, count + 3))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] >>"
    return make_pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count),
        *[page] * count,
    )


def make_lying_page_count() -> bytes:
    """One page that says it is two thousand million."""
    return make_pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 2000000000 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] >>",
    )


def make_ring_of_pages() -> bytes:
    return make_pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 5 >>",
    )


def make_wide_png(side: int = 60_000) -> bytes:
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    pixels = _deflate_zeros(side * (side // 8 + 1) // MEGABYTE + 1)
    chunks = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def make_wide_tiff(side: int = 60_000) -> bytes:
    packed = _deflate_zeros(side * (side // 8) // MEGABYTE + 1)
    entries = [
        (256, 4, 1, side),
        (257, 4, 1, side),
        (258, 3, 1, 1),
        (259, 3, 1, 8),
        (262, 3, 1, 1),
        (273, 4, 1, 8),
        (277, 3, 1, 1),
        (278, 4, 1, side),
        (279, 4, 1, len(packed)),
    ]
    directory = struct.pack("<H", len(entries))
    directory += b"".join(struct.pack("<HHII", *entry) for entry in entries)
    return b"II*\x00" + struct.pack("<I", 8 + len(packed)) + packed + directory + b"\0\0\0\0"


FILES = {
    "flate-bomb.pdf": make_flate_bomb,
    "double-flate.pdf": make_double_flate,
    "nested-forms.pdf": make_nested_forms,
    "operators.pdf": make_many_operators,
    "many-pages.pdf": make_many_pages,
    "lying-count.pdf": make_lying_page_count,
    "pages-in-a-ring.pdf": make_ring_of_pages,
    "wide.png": make_wide_png,
    "wide.tiff": make_wide_tiff,
    "page.pdf": lambda: b"<!doctype html><title>Not found</title><h1>404</h1>",
    "empty.pdf": lambda: b"",
    "cut-off.pdf": lambda: b"%PDF-1.7\n1 0 obj\n<< /Type /Cat",
    "noise.jpg": lambda: b"\xff\xd8\xff" + bytes(range(256)) * 64,
    "letter.docx": lambda: b"PK\x03\x04",
}
