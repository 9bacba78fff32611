"""The desk: one search and one fetch over every base, and what takes two bases to answer."""

DESK_NAME = "desk"
"""What it is called where bases are: in the data directory, in listings, on the admin route."""
