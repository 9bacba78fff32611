"""Office files: Word, OpenDocument and Excel, and the containers they come in."""
