"""A set of texts that takes little memory: of a million names of tasks, 16 bytes each."""

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH = 16
"""Bytes of a digest: among 10^9 texts, two have the same one with a probability of 10^-21."""
NEW = 1 << 14
"""Digests at least that are gathered before they are sorted into the others."""


class DigestSet:
    """Texts that were seen, as digests: most of them in a sorted array, the last ones in a set."""

    def __init__(self) -> None:
        self._new = set[bytes]()
        self._sorted: NDArray[np.bytes_] = np.empty(0, f"S{WIDTH}")

    def __len__(self) -> int:
        return len(self._new) + self._sorted.size

    def __contains__(self, text: str) -> bool:
        return self._has(_digest(text))

    def add(self, text: str) -> None:
        """Add a text."""
        digest = _digest(text)
        if self._has(digest):
            return
        self._new.add(digest)
        if len(self._new) >= max(NEW, self._sorted.size // 8):
            new = np.frombuffer(b"".join(self._new), self._sorted.dtype)
            self._new.clear()
            self._sorted = np.concatenate([self._sorted, new])
            self._sorted.sort()

    def _has(self, digest: bytes) -> bool:
        if digest in self._new or not self._sorted.size:
            return digest in self._new
        key = np.frombuffer(digest, self._sorted.dtype)
        at = int(np.searchsorted(self._sorted, key)[0])
        return at < self._sorted.size and bool(self._sorted[at] == key[0])


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=WIDTH).digest()
