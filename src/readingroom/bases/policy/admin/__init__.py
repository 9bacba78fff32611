"""What operators do with policies: create and change them, one by one or from a list."""
