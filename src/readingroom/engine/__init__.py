"""How knowledge is cut, embedded, filtered and found; knows no base and no protocol."""
