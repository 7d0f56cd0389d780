"""capnpy in its fast mode: a Cython module for each schema, built by gcc when it is loaded."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from bench import data as values
from bench.against import Case, Measured, Unavailable
from bench.harness import fresh_process_seconds, installed_bytes

NAME = "capnpy"
DISTRIBUTION = "capnpy"


class Capnpy:
    def __init__(self, library: Any, options: Any, folder: Path) -> None:
        self.library, self.options, self.folder = library, options, folder

    @functools.cache  # noqa: B019 - one adapter lives as long as its process
    def schema(self, name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.library.load_schema(
                filename=str(values.SCHEMAS / f"{name}.capnp"), options=self.options, pyx=True
            )

    @property
    def codec(self) -> Any:
        return self.schema("codec")

    def read(self, name: str) -> bytes:
        return (self.folder / f"{name}.bin").read_bytes()

    def field_uint32(self) -> Case:
        small = self.codec.Small.loads(self.read("small"))
        return Case(lambda: small.age)

    def field_text(self) -> Case:
        small = self.codec.Small.loads(self.read("small"))
        return Case(lambda: small.name)

    def small_open(self) -> Case:
        data, loads = self.read("small"), self.codec.Small.loads

        def run() -> tuple[Any, ...]:
            small = loads(data)
            return small.id, small.name, small.email, small.age, small.active

        return Case(run)

    def small_build(self) -> Case:
        kind, names = self.codec.Small, tuple(values.SMALL)
        name, email = values.SMALL["name"], values.SMALL["email"]
        number, age = values.SMALL["id"], values.SMALL["age"]
        return Case(
            lambda: kind(id=number, name=name, email=email, age=age, active=True).dumps(),
            lambda result: {key: getattr(kind.loads(result), key) for key in names},
        )

    def rows_iterate(self) -> Case:
        data, loads = self.read("rows"), self.codec.Rows.loads

        def run() -> float:
            total = 0.0
            for row in loads(data).rows:
                total += row.id + row.score
            return total

        return Case(run)

    def sparse_open(self) -> Case:
        data, loads = self.read("sparse"), self.schema("sparse").Sparse.loads

        def run() -> tuple[int, ...]:
            m = loads(data)
            return m.f3, m.f50, m.f111, m.f200, m.f255

        return Case(run)

    def blob_bytes(self) -> Case:
        data, loads = self.read("blob"), self.codec.Blob.loads
        return Case(lambda: loads(data).data)

    def import_time(self) -> Measured:
        return Measured(lambda: fresh_process_seconds("import capnpy"))

    def installed_size(self) -> Measured:
        return Measured(lambda: installed_bytes("capnpy", DISTRIBUTION))


def adapter(folder: Path, events: int) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import capnpy
            from capnpy import annotate
    except ImportError as error:
        raise Unavailable(str(error)) from error
    # It calls `capnp` by PATH and builds below the directory for temporary files.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    options = annotate.Options(
        convert_case=False,
        text_type=annotate.TextType.unicode,
        include_reflection_data=False,
    )
    return Capnpy(capnpy, options, folder)
