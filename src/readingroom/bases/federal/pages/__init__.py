"""Pages for people about federal records: lists over time, bills, votes, members, links."""
