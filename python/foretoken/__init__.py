"""foretoken for Python: scenarios as dictionaries in, answers as dictionaries out.

    import foretoken
    answer = foretoken.simulate({
        "model": "llama3-8b",
        "cluster": {"gpu": "h100-sxm", "gpus": 64},
        "training": {"sequence_length": 8192, "global_batch_size": 128},
    })
    print(answer["tokens_per_s"], answer["cost"]["usd_per_million_tokens"])

It calls libforetoken.so through ctypes: no compiler is needed. The library is the one that
FORETOKEN_LIBRARY names, else the one that was installed with this module, else the one of the system; it
finds its data where it was installed, or in the folder that FORETOKEN_DATA names. Threads may ask at once: they
take turns, unless each has a Session of its own. A file of your own that changed is read again; after a change
in a file that it extends, open a new Session. Keys are those of foretoken-scenario(5), answers those of
`foretoken simulate --json` and `foretoken compare --json`.
"""
import ctypes
import ctypes.util
import json
import os
import pathlib
import threading
from typing import Any, Iterable, Mapping, Union

Scenario = Union[str, Mapping[str, Any]]  # YAML or JSON text, or a dictionary

__all__ = ["Error", "Scenario", "Session", "compare", "simulate"]


class Error(ValueError):
    """What the library refuses, in its own words: "scenario 1:3:7: error: ..."."""


def _beside() -> Union[str, None]:
    """PREFIX/lib/libforetoken.so.0 of a module in PREFIX/lib/python3/dist-packages/foretoken."""
    for folder in pathlib.Path(__file__).resolve().parents:
        if folder.name.startswith("lib"):
            found = sorted(folder.glob("libforetoken.so.*"))
            return str(found[0]) if found else None
    return None


def _library() -> ctypes.CDLL:
    path = os.environ.get("FORETOKEN_LIBRARY") or _beside() or ctypes.util.find_library("foretoken")
    if not path:
        raise OSError("libforetoken.so was not found: install foretoken, or name the file in FORETOKEN_LIBRARY")
    lib = ctypes.CDLL(path)
    lib.ft_session_new.restype = ctypes.c_void_p
    lib.ft_session_new.argtypes = []
    lib.ft_session_free.restype = None
    lib.ft_session_free.argtypes = [ctypes.c_void_p]
    lib.ft_session_error.restype = ctypes.c_char_p
    lib.ft_session_error.argtypes = [ctypes.c_void_p]
    lib.ft_session_simulate.restype = ctypes.c_void_p  # not c_char_p: the text is to be freed
    lib.ft_session_simulate.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    lib.ft_session_compare.restype = ctypes.c_void_p
    lib.ft_session_compare.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t]
    lib.ft_session_release.restype = None
    lib.ft_session_release.argtypes = [ctypes.c_void_p]
    return lib


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot stand in a scenario")


def _text(scenario: Scenario) -> bytes:
    text = scenario if isinstance(scenario, str) else json.dumps(scenario, ensure_ascii=False, default=_plain)
    if "\0" in text:  # C would read no further
        raise Error("scenario: error: is not valid YAML: control characters are not allowed")
    return text.encode()


class Session:
    """What has been read and predicted, kept for the next question. Threads take turns."""

    def __init__(self) -> None:
        self._turn = threading.RLock()
        self._lib = _library()
        self._session = self._lib.ft_session_new()

    def close(self) -> None:
        with self._turn:
            if self._session:
                self._lib.ft_session_free(self._session)
                self._session = None

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *what: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_session", None):
            self.close()

    def _open(self) -> int:
        if not self._session:
            raise Error("error: the session is closed")
        return self._session

    def _answer(self, address: int) -> dict[str, Any]:
        if not address:
            raise Error(self._lib.ft_session_error(self._session).decode(errors="replace"))
        try:
            return json.loads(ctypes.string_at(address))
        finally:
            self._lib.ft_session_release(address)

    def simulate(self, scenario: Scenario) -> dict[str, Any]:
        text = _text(scenario)
        with self._turn:
            return self._answer(self._lib.ft_session_simulate(self._open(), text))

    def compare(self, scenarios: Iterable[Scenario]) -> dict[str, Any]:
        if isinstance(scenarios, (str, Mapping)):
            raise Error("error: a list of two to 16 scenarios can be compared, not one scenario")
        texts = [_text(s) for s in scenarios]
        array = (ctypes.c_char_p * len(texts))(*texts)
        with self._turn:
            return self._answer(self._lib.ft_session_compare(self._open(), array, len(texts)))


_session: Union[Session, None] = None
_opening = threading.Lock()


def _shared() -> Session:
    global _session
    with _opening:
        if _session is None:
            _session = Session()
        return _session


def simulate(scenario: Scenario) -> dict[str, Any]:
    """One scenario: tokens/s, where a step goes, memory, dollars, each with its range."""
    return _shared().simulate(scenario)


def compare(scenarios: Iterable[Scenario]) -> dict[str, Any]:
    """Two to sixteen scenarios: their answers, why they differ, and whose tokens are cheapest with which odds."""
    return _shared().compare(scenarios)
