"""The bounded cache: what was used last stays, what has not been used for longest goes."""

from readingroom.core.lru import LRUCache


def test_the_least_recently_used_entry_is_discarded_first() -> None:
    cache: LRUCache[str, int] = LRUCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1

    cache.put("c", 3)

    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    assert len(cache) == 2


def test_entries_may_be_weighed_instead_of_counted() -> None:
    cache: LRUCache[str, bytes] = LRUCache(10, weigh_entry=lambda key, value: len(value))
    cache.put("small", b"123")
    cache.put("small", b"1234")
    cache.put("medium", b"123456")
    assert len(cache) == 2

    cache.put("large", b"123456789")
    assert (len(cache), cache.get("large")) == (1, b"123456789")

    cache.put("too large for any cache of this size", bytes(11))
    assert len(cache) == 0


def test_a_discarded_entry_makes_room() -> None:
    cache: LRUCache[str, int] = LRUCache(1)
    cache.put("a", 1)
    cache.discard("a")
    cache.discard("never there")
    cache.put("b", 2)
    assert (cache.get("a"), cache.get("b")) == (None, 2)
