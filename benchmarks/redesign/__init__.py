"""0.1.0 beside the present tree: processor time of a question, of opening bases, of a search."""
