"""What a document's text consists of: layout, sections, and what kind of document it is."""
