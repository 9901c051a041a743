"""What comes of a procedure: the result of a transition, to which the next step may be added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Concatenate, ParamSpec

from reconstruct.model.controller import outputs
from reconstruct.model.controller.outputs import Failure, ZnodeWrite
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.zookeeper import ZooKeeper

P = ParamSpec("P")


class RequestError(StrEnum):
    """Why a request was refused: the exception that Kafka throws, or the error that it answers."""

    BROKER_NOT_AVAILABLE = "BrokerNotAvailableException"
    STALE_BROKER_EPOCH = "StaleBrokerEpochException"
    NOT_CONTROLLER = "NOT_CONTROLLER"
    UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
    INVALID_TOPIC = "INVALID_TOPIC_EXCEPTION"
    INVALID_REPLICA_ASSIGNMENT = "INVALID_REPLICA_ASSIGNMENT"
    NO_REASSIGNMENT_IN_PROGRESS = "NO_REASSIGNMENT_IN_PROGRESS"
    FENCED_LEADER_EPOCH = "FENCED_LEADER_EPOCH"
    INVALID_UPDATE_VERSION = "INVALID_UPDATE_VERSION"
    INVALID_REQUEST = "INVALID_REQUEST"
    INELIGIBLE_REPLICA = "INELIGIBLE_REPLICA"
    REQUEST_IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Step:
    """A milestone, in the words of controller.log."""

    text: str


@dataclass(frozen=True, slots=True)
class Result(outputs.Result):
    """``is_aborted`` is True where Kafka throws out of a procedure: its remaining steps are not done, until
    :meth:`caught`."""

    is_aborted: bool = False

    @staticmethod
    def of(result: outputs.Result) -> Result:
        """What a state machine answers, to go on with."""
        if isinstance(result, Result):
            return result
        return Result(**{field.name: getattr(result, field.name) for field in fields(outputs.Result)})

    def then(
        self,
        step: Callable[Concatenate[ControllerContext, ZooKeeper, P], outputs.Result],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Result:
        """Go on with the next step, if there is to be one; effects add up, ``elected`` is the last step's."""
        if self.is_over:
            return self
        result = Result.of(step(self.context, self.zookeeper, *args, **kwargs))
        return replace(result, outputs=self.outputs + result.outputs, failures=self.failures + result.failures)

    def change(self, change: Callable[[ControllerContext], ControllerContext]) -> Result:
        """Change the context only."""
        return self if self.is_over else replace(self, context=change(self.context))

    def note(self, text: str) -> Result:
        return self if self.is_over else replace(self, outputs=(*self.outputs, Step(text)))

    def caught(self) -> Result:
        """The procedure that was aborted ends here; what comes next is another."""
        return replace(self, is_aborted=False)

    @property
    def is_over(self) -> bool:
        return self.has_moved or self.is_aborted

    def fail(self, *failures: Failure) -> Result:
        return replace(self, failures=self.failures + failures)

    @property
    def writes(self) -> tuple[ZnodeWrite, ...]:
        return tuple(output for output in self.outputs if isinstance(output, ZnodeWrite))

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(output.text for output in self.outputs if isinstance(output, Step))
