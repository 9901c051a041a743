"""The ``fields`` of a record decoded: the shapes hand on text, and nothing else turns it into numbers and partitions.

What Spark decodes is in :mod:`reconstruct.events.spark.fields`, by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from ingest.shapes.values import fitting

#: A topic and the number of one of its partitions.
Partition = tuple[str, int]


def fields_of(pairs: Mapping[str, str | None] | Iterable[tuple[str, str | None]] | None) -> Mapping[str, str]:
    """The fields of one record from a map, or from the pairs that Arrow makes of one within a struct; what is NULL is
    not among them."""
    if isinstance(pairs, dict) and None not in pairs.values():  # as nearly all are
        return cast("Mapping[str, str]", pairs)
    given = pairs.items() if isinstance(pairs, Mapping) else pairs or ()
    return {name: value for name, value in given if value is not None}


def number(text: str | None, bits: int = 63) -> int | None:
    """A number without sign; None for any other text, which damaged lines may hold, for a number that needs more bits,
    and for none."""
    return fitting(text, bits) if text is not None and text.isdecimal() else None


def words(text: str | None) -> list[str]:
    """The parts of ``1,2,3`` without blanks around them; nothing for an empty text and for none."""
    return [part.strip() for part in text.split(",")] if text else []


def partitions_of(fields: Mapping[str, str]) -> list[Partition]:
    """The partitions that a record is about, in its order: its own, else those it lists (``topic_partitions``). None at
    all where one has no number of 32 bits: what else a list says is of its partitions by their place."""
    if "topic" in fields and "partition_id" in fields:
        named = [(fields["topic"], number(fields["partition_id"], 31))]
    else:
        parts = (name.rpartition("-") for name in words(fields.get("topic_partitions")) if name)
        named = [(topic, number(partition_id, 31)) for topic, _, partition_id in parts]
    found = [(topic, partition_id) for topic, partition_id in named if partition_id is not None]
    return found if len(found) == len(named) else []


def partition_name(fields: Mapping[str, str]) -> str | None:
    """``topic-partition`` of a record about one partition, as Kafka writes it; None for every other record."""
    return f"{fields['topic']}-{fields['partition_id']}" if "topic" in fields and "partition_id" in fields else None
