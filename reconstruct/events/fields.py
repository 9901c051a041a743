"""The ``fields`` of a record decoded: the shapes hand on text, and nothing else turns it into numbers and partitions.

What Spark decodes is in :mod:`reconstruct.events.spark.fields`, by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: A topic and the number of one of its partitions.
Partition = tuple[str, int]


def fields_of(pairs: Iterable[tuple[str, str | None]] | None) -> dict[str, str]:
    """The fields of one record from the pairs that Arrow makes of a map; what is NULL is not among them."""
    return {name: value for name, value in pairs or () if value is not None}


def number(text: str | None) -> int | None:
    """A number without sign; None for any other text, which damaged lines may hold, and for none."""
    return int(text) if text is not None and text.isdecimal() else None


def words(text: str | None) -> list[str]:
    """The parts of ``1,2,3`` without blanks around them; nothing for an empty text and for none."""
    return [part.strip() for part in text.split(",")] if text else []


def partitions_of(fields: Mapping[str, str]) -> list[Partition]:
    """The partitions that a record is about, in its order: its own, else those it lists (``topic_partitions``)."""
    if "topic" in fields and "partition_id" in fields:
        return [(fields["topic"], int(fields["partition_id"]))]
    names = (name.rsplit("-", 1) for name in words(fields.get("topic_partitions")) if name)
    return [(topic, int(partition_id)) for topic, partition_id in names]


def partition_name(fields: Mapping[str, str]) -> str | None:
    """``topic-partition`` of a record about one partition, as Kafka writes it; None for every other record."""
    return f"{fields['topic']}-{fields['partition_id']}" if "topic" in fields and "partition_id" in fields else None
