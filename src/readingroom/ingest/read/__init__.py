"""Reading files: the sandboxed process, its formats, and OCR."""
