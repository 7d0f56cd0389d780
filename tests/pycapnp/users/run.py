"""`python run.py pycapnp|capnwire <program> <scale> [<rounds>]`: run one program, print JSON.

`{"result": …, "seconds": best of the rounds}`.  The programs themselves only know `import capnp`.
"""

import importlib.util
import json
import sys
import time
from pathlib import Path


def main(which: str, name: str, scale: int, rounds: int) -> None:
    if which == "capnwire":
        import capnwire.pycapnp

        capnwire.pycapnp.install()
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"user_{name}", path)
    assert spec is not None and spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        result = program.main(scale)
        best = min(best, time.perf_counter() - start)
    json.dump({"result": result, "seconds": best}, sys.stdout, default=str)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(arguments[0], arguments[1], int(arguments[2]), int((arguments + ["1"])[3]))
