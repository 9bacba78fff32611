"""Lists, counts, sums, series and dossiers over federal records."""
