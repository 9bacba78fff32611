"""Pages for people, and the documents by which clients find this server."""
