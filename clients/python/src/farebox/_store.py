"""Where it is kept what was spent, and which payments wait for their answers."""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Generator, Protocol

from ._errors import StoreError


class Store(Protocol):
    """Keeps one text, which several processes may share. A row of a database or a value of a cache server will do.

    The text holds signed payments: keep it as a secret.
    """

    def update(self, change: Callable[[str], str]) -> None:
        """Replaces the text (empty at first) by what ``change`` makes of it.

        Nobody else's update may come between the reading and the writing, and the new text must be safe from a crash when
        this returns. ``change`` may be called again when somebody else was quicker. When it raises, nothing is replaced.
        """


class MemoryStore:
    """Forgets everything with its process: a lost answer is not bought twice while the process lives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = ""

    def update(self, change: Callable[[str], str]) -> None:
        with self._lock:
            self._text = change(self._text)


class FileStore:
    """A file for its owner alone, which outlives the process and which several processes of one machine may share."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._threads = threading.Lock()

    def update(self, change: Callable[[str], str]) -> None:
        with self._threads:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                with _locked(self._path.with_name(self._path.name + ".lock")):
                    before = self._path.read_text("utf-8") if self._path.exists() else ""
                    after = change(before)
                    if after != before:
                        self._replace(after)
            except (OSError, UnicodeError) as error:
                raise StoreError("STORE_UNUSABLE", f"{self._path} cannot be used: {error}. Nothing was bought.") from error

    def _replace(self, text: str) -> None:
        # mkstemp makes it for its owner alone.
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self._path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        if os.name == "posix":
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


@contextmanager
def _locked(path: Path) -> Generator[None, None, None]:
    with open(path, "a", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        # The lock goes with the process, however it ends.
        if os.name == "posix":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        else:  # pragma: no cover
            import importlib

            msvcrt = importlib.import_module("msvcrt")
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        yield
