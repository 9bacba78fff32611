"""Documents of planning applications: ingested, searched, read page by page, and cited."""
