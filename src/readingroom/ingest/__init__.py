"""Any file in; text with pages, sections and chunks out, and no file harms the server."""
