"""Which of a broker's fetcher threads fetches a partition: AbstractFetcherManager.getFetcherId, by version."""

from __future__ import annotations

from typing import Final

from reconstruct.model.versions import FETCHER_HASH_ABSOLUTE_SINCE, FETCHER_HASH_UNSIGNED_SINCE, KafkaVersion

_INT_BITS: Final = 32
_SIGN: Final = 1 << (_INT_BITS - 1)


def java_hash(text: str) -> int:
    """``String.hashCode`` of a text whose characters are of one UTF-16 unit each, as topics' are."""
    value = 0
    for character in text:
        value = 31 * value + ord(character)
    return _as_int(value)


def fetcher_id(topic: str, partition_id: int, fetchers_count: int, version: KafkaVersion) -> int:
    """The number of the thread, of ``num.replica.fetchers`` to each leader, that fetches the partition.

    In 0.8.0 it may be negative: then it counts below 0, a thread of its own.
    """
    if version < FETCHER_HASH_UNSIGNED_SINCE:
        value = _as_int(java_hash(topic) + 31 * partition_id)
        return abs(value) % fetchers_count * (1 if value >= 0 else -1)
    value = _as_int(31 * java_hash(topic) + partition_id)
    if version < FETCHER_HASH_ABSOLUTE_SINCE:
        return (value & (_SIGN - 1)) % fetchers_count
    return (0 if value == -_SIGN else abs(value)) % fetchers_count


def _as_int(value: int) -> int:
    """As an int of Java overflows."""
    return (value + _SIGN) % (1 << _INT_BITS) - _SIGN
