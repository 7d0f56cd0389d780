"""pycapnp in a process of its own, which may die of what it is asked.

Not a test.  Run as a script it answers pickled requests; `Peer` is the other end.
"""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
from typing import Any, BinaryIO


class Peer:
    """Asks a process that has pycapnp; a new one is started when it died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, path: str, items: list[tuple[Any, ...]]) -> list[Any]:
        """For each (struct, value, words, bytes, packed): what pycapnp makes of them, or its error.

        That is (its bytes, its packed bytes, its dict of our bytes, of our packed bytes, its text).
        """
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        put(self._process.stdin, (path, items))
        answer = get(self._process.stdout)
        if answer is None:
            code = self._process.wait()
            raise ConnectionError(f"pycapnp died with {code} of {path}")
        result: list[Any] = answer
        return result

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait(10)
            self._process.stdout.close()


def put(file: BinaryIO, value: object) -> None:
    data = pickle.dumps(value)
    file.write(struct.pack("<Q", len(data)) + data)
    file.flush()


def get(file: BinaryIO) -> Any:
    head = file.read(8)
    if len(head) < 8:
        return None
    return pickle.loads(file.read(struct.unpack("<Q", head)[0]))


def answer(
    module: Any, name: str, value: dict[str, Any], words: int | None, data: bytes, packed: bytes
) -> tuple[Any, ...]:
    kind = getattr(module, name)
    made = kind.new_message(words, **value)
    with kind.from_bytes(data) as reader:
        read, text = repr(reader.to_dict()), str(reader)
    unpacked = repr(kind.from_bytes_packed(packed).to_dict())
    their_packed = made.to_bytes_packed()
    made.clear_write_flag()
    return made.to_bytes(), their_packed, read, unpacked, text


def main() -> None:
    import capnp

    capnp.remove_import_hook()
    while True:
        request = get(sys.stdin.buffer)
        if request is None:
            return
        path, items = request
        module = capnp.SchemaParser().load(path)  # ids may come again
        answers: list[Any] = []
        for item in items:
            try:
                answers.append(answer(module, *item))
            except Exception as error:
                answers.append(f"{type(error).__name__}: {error}")
        put(sys.stdout.buffer, answers)


if __name__ == "__main__":
    main()
