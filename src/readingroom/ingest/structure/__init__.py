"""The structure of a document: its layout, its sections and its type."""
