"""What federal records are: their ids, fields, sources, filters and tables."""
