"""What brokers describe of topics: what of it is new, and which topics are not described to us at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from ingest.capture.brokers import answers
from ingest.capture.missed import Missed

#: Unchanged descriptions are written again after so many requests for metadata.
_REPEAT: Final = 60
#: So many topics are asked about by name at a time.
_ASKED: Final = 500
_SOURCE: Final = "probes"
_ANY: Final = "any topic"
_HIDDEN: Final = "topics without permission"
#: Kafka's TOPIC_AUTHORIZATION_FAILED.
_NOT_AUTHORISED: Final = 29

#: The topics that ZooKeeper has; None where that is not known.
KnownTopics = Callable[[], Collection[str] | None]


class Changes:
    """The descriptions of one connection: a line is written when it changed, and each one again after a while."""

    def __init__(self) -> None:
        self._described: dict[str, int] = {}
        self._asked = 0

    @property
    def topics(self) -> Collection[str]:
        """Those that were described last."""
        return self._described.keys()

    def of(self, entries: Iterable[tuple[str, str]]) -> list[str]:
        """What was not written like this before, by hash: the whole would be much to hold."""
        if self._asked % _REPEAT == 0:
            self._described.clear()
        self._asked += 1
        now: dict[str, int] = {}
        changed = []
        for topic, rest in entries:
            now[topic] = hash(rest)
            if self._described.get(topic) != now[topic]:
                changed.append(rest)
        changed += [answers.gone_entry(topic) for topic in sorted(self._described.keys() - now.keys())]
        self._described = now
        return changed


class HiddenTopics:
    """Says which topics are not described to us. Brokers leave out those that we may not DESCRIBE without a word; asked
    for one by its name they say so."""

    def __init__(self, known: KnownTopics, missed: Missed) -> None:
        self._known = known
        self._missed = missed
        self._refused: tuple[str, ...] = ()

    def doubtful(self, described: Collection[str]) -> list[str]:
        """Topics that the cluster has and that are not described: to be asked about by name."""
        known = self._known()
        if known is None:
            if described:
                self._missed.back(_SOURCE, _ANY)
            else:
                self._missed.lost(
                    _SOURCE, _ANY, "no topic is described: there is none, or no permission to DESCRIBE one"
                )
            return []
        hidden = sorted(set(known).difference(described))[:_ASKED]
        if not hidden:
            self._judge(())
        return hidden

    def answered(self, response: Any) -> None:
        """The answer about those."""
        self._judge(tuple(sorted(one.name for one in response.topics if one.error_code == _NOT_AUTHORISED)))

    def _judge(self, refused: tuple[str, ...]) -> None:
        if refused == self._refused:
            return
        self._refused = refused
        self._missed.back(_SOURCE, _HIDDEN)
        if refused:
            least = "at least " if len(refused) == _ASKED else ""
            more = f" and {least}{len(refused) - 1:,} more" if len(refused) > 1 else ""
            self._missed.lost(_SOURCE, _HIDDEN, f"no permission to DESCRIBE {refused[0]}{more}")
