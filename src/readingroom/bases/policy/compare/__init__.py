"""Policy texts put together, compared word by word and checked against a quotation."""
