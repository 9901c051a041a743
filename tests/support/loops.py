"""One test over many cases of one form, where a case's name is not worth a line of pytest's list."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any


def for_each(**values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run the test for every combination of ``values``, and fail with each case that failed and why.

    The other parameters of the test are its fixtures, which all cases share: a test that changes one is parametrised.
    """
    cases = [dict(zip(values, case, strict=True)) for case in itertools.product(*values.values())]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def over_all_cases(**fixtures: Any) -> None:
            failed = []
            for case in cases:
                try:
                    test(**fixtures, **case)
                except Exception as error:
                    failed.append(f"{_named(case)}: {type(error).__name__}: {error}")
            assert not failed, f"{len(failed)} of {len(cases)} cases failed:\n" + "\n".join(failed)

        fixtures = [p for name, p in inspect.signature(test).parameters.items() if name not in values]
        over_all_cases.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined]
        return over_all_cases

    assert cases, f"no case of {', '.join(values)}"
    return decorate


def _named(case: dict[str, Any]) -> str:
    """The case's values: a declaration by its name or id, everything else as text."""
    return ", ".join(
        f"{name}={next((getattr(value, a) for a in ('id', 'full_name', 'name') if hasattr(value, a)), value)}"
        for name, value in case.items()
    )
