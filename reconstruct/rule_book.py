"""The rules that are judged: a stable id each, what it promises, where the promise comes from, who judges it.

Each room declares its rules beside its judges. What coverage says cannot be judged, the checks of rules and the index
in ``docs/rules.md`` follow from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from reconstruct.checkpoints.rules import RULES as _OF_CHECKPOINTS
from reconstruct.cluster.rules import RULES as _OF_CLUSTERS
from reconstruct.findings.rule import Rule
from reconstruct.metadata_log.choices import RULES as _OF_QUORUMS
from reconstruct.metadata_log.migration import RULES as _OF_MIGRATIONS
from reconstruct.metadata_log.rules import RULES as _OF_METADATA_LOGS
from reconstruct.offsets.rules.book import RULES as _OF_OFFSETS
from reconstruct.partitions.rules.book import RULES as _OF_PARTITIONS
from reconstruct.requests.rules.book import RULES as _OF_REQUESTS
from reconstruct.segments.rules import RULES as _OF_SEGMENTS

__all__ = ["RULES", "Rule"]


def _by_id(rules: Iterable[Rule]) -> dict[str, Rule]:
    """In the order of ids; a rule that several rooms judge has the judges of all."""
    found: dict[str, Rule] = {}
    for rule in sorted(rules, key=lambda rule: rule.rule_id):
        judges = found[rule.rule_id].judges if rule.rule_id in found else ()
        found[rule.rule_id] = rule.judged_by(*judges, *rule.judges)
    return found


#: The rules that are judged, by id.
RULES: Final[Mapping[str, Rule]] = _by_id(
    (
        *(*_OF_CLUSTERS, *_OF_PARTITIONS, *_OF_REQUESTS, *_OF_OFFSETS, *_OF_CHECKPOINTS, *_OF_SEGMENTS),
        *(*_OF_METADATA_LOGS, *_OF_QUORUMS, *_OF_MIGRATIONS),
    )
)
