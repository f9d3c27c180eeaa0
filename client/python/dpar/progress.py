"""Progress for people: a bar where tqdm is installed and somebody looks, lines otherwise. All of it goes to stderr."""
from __future__ import annotations

import importlib.util
import sys
from typing import Any


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and "IPKernelApp" in getattr(shell.get_ipython(), "config", {})


class Progress:
    """One bar or line for each stage. Used as a context, it is closed at the end.

    >>> with Progress(False) as progress:
    ...     progress.update("training", 1, 2)
    """

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._bars = shown and importlib.util.find_spec("tqdm") is not None and (sys.stderr.isatty() or _in_notebook())
        self._bar: Any = None
        self._stage = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def update(self, stage: str, completed: float, total: float, note: str = "") -> None:
        """`total` is 0 where there is no measure."""
        if not self._shown:
            return
        if stage != self._stage:
            self._begin(stage, total)
        if self._bar is not None:
            self._bar.total = total or None
            self._bar.n = completed
            self._bar.set_postfix_str(note, refresh=True)

    def say(self, text: str) -> None:
        """A line of its own, between bars."""
        if not self._shown:
            return
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)

    def _begin(self, stage: str, total: float) -> None:
        self._stage = stage
        if not self._bars:
            self.say(stage)
            return
        if self._bar is not None:
            self._bar.close()
        tqdm = importlib.import_module("tqdm").tqdm
        self._bar = tqdm(
            total=total or None,
            desc=stage,
            file=sys.stderr,
            leave=total > 0,
            bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining} {postfix}"
            if total
            else "{desc} {elapsed}{postfix}",
        )
