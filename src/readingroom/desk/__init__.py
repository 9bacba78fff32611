"""The desk: one search and one fetch over every base, and what takes two bases to answer."""
