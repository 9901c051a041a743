"""Texts whose values must not be taken as printed, each with the release that prints them and why.

A quirk takes the fields as read and the message, and returns the fields that hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ingest.shapes.values import fitting

Quirk = Callable[[dict[str, str], str], dict[str, str]]


def swapped_epoch_and_correlation_id(fields: dict[str, str], message: str) -> dict[str, str]:
    """0.8.0 prints correlation id and controller epoch of a stale LeaderAndIsr request in each other's place.

    0.8.1 prints the same text with the values right. The request was refused since its epoch is below the known one,
    which tells the two apart but where both numbers are below it, or one needs more than 32 bits: then neither is
    given.
    """
    known, printed_epoch, printed_correlation = (
        fitting(fields[name], 31) for name in ("known_controller_epoch", "request_controller_epoch", "correlation_id")
    )
    if known is not None and printed_epoch is not None and printed_correlation is not None:
        if printed_epoch < known <= printed_correlation:
            return fields
        if printed_correlation < known <= printed_epoch:
            return {
                **fields,
                "request_controller_epoch": fields["correlation_id"],
                "correlation_id": fields["request_controller_epoch"],
            }
    return {name: value for name, value in fields.items() if name not in ("request_controller_epoch", "correlation_id")}


def replicas_were_a_java_set(fields: dict[str, str], message: str) -> dict[str, str]:
    """0.10.0 to 0.11 (they print ``t-0``, the releases before print ``[t,0]``) cache the replicas in no order of worth.

    Where 0.11 keeps the order, the text does not tell it from 0.10's.
    """
    if "replicas" in fields and " for partition [" not in message:
        fields["replica_set"] = fields.pop("replicas")
    return fields


def partitions_of_the_topic(fields: dict[str, str], message: str) -> dict[str, str]:
    """The assignment of a topic is printed without its name, which is in the path: up to 0.11."""
    partitions = fields.pop("partition_ids", None)
    if partitions is not None and "topic" in fields:
        topic = fields["topic"]
        fields["topic_partitions"] = ",".join(f"{topic}-{partition}" for partition in partitions.split(","))
    return fields


QUIRKS: Final[Mapping[str, Quirk]] = {
    "swapped_epoch_and_correlation_id": swapped_epoch_and_correlation_id,
    "replicas_were_a_java_set": replicas_were_a_java_set,
    "partitions_of_the_topic": partitions_of_the_topic,
}
