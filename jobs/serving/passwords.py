"""Who may connect to the Thrift server: everybody who reaches it, or those whose password stands in a file."""

from __future__ import annotations

import hmac
import os
import stat
import time
from collections.abc import Mapping
from typing import Any, Final

from jobs.command.job import UsageError

#: After a wrong password, before the client is told.
_SECONDS_AFTER_WRONG: Final = 1.0


def read_passwords(path: str) -> dict[str, bytes]:
    """The passwords of a file by user: lines ``user:password``, in UTF-8; empty ones and those that begin with ``#``
    are passed over. :class:`~jobs.command.job.UsageError` for a file that others may read, or that holds none."""
    try:
        with open(path, encoding="utf-8") as file:
            others = stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077
            lines = file.read().splitlines()
    except OSError as error:
        raise UsageError(f"cannot read --password-file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read --password-file {path}: it is not UTF-8 text") from error
    if others:
        raise UsageError(f"--password-file {path} may be read by others: chmod 600 it")
    passwords: dict[str, bytes] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        user, _, password = line.partition(":")
        if not user or not password:
            raise UsageError(f"--password-file {path}, line {number}: give user:password")
        passwords[user] = password.encode()
    if not passwords:
        raise UsageError(f"--password-file {path} holds no line user:password")
    return passwords


class Login:
    """Asked by Java at each connection (SASL PLAIN); without passwords everybody is let in."""

    def __init__(self, passwords: Mapping[str, bytes] | None) -> None:
        self._passwords = passwords

    def handle(self, asked: Any) -> None:
        """Java's ``CallbackHandler``: reads the name and the password, and says whether they are right."""
        of = {str(each.getClass().getSimpleName()): each for each in asked}
        allowed = self._passwords is None or self.is_right(
            _sent(str(of["NameCallback"].getName())), _sent("".join(of["PasswordCallback"].getPassword()))
        )
        if not allowed:
            time.sleep(_SECONDS_AFTER_WRONG)
        of["AuthorizeCallback"].setAuthorized(allowed)

    def is_right(self, user: bytes, password: bytes) -> bool:
        """Whether that is the user's password; as long for a user that there is not."""
        wanted = (self._passwords or {}).get(user.decode("utf-8", "replace"))
        return hmac.compare_digest(password, password + b"x" if wanted is None else wanted)

    class Java:
        implements = ("javax.security.auth.callback.CallbackHandler",)


def _sent(text: str) -> bytes:
    """The bytes that a client sent, of which Hive makes a character each, its sign kept."""
    return bytes(ord(character) & 0xFF for character in text)
