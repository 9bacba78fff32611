"""Low-rank changes of the cross-encoder's upper layers: trained on some corpora, tried on others.

`docs/engine.md`, "The second look", has what was measured.
"""
