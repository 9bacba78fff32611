"""The chunks of revisions: the store that keeps them, and the search over what it keeps."""
