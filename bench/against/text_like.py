"""The rows for formats without a schema on the wire: dumps and loads of plain values."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from bench import data as values
from bench.against import Case, Measured
from bench.harness import fresh_process_seconds, installed_bytes


class TextLike:
    """Rows over `dumps(value) -> bytes` and `loads(bytes) -> value`; Data travels as base64."""

    def __init__(
        self, dumps: Callable[[Any], bytes], loads: Callable[[bytes], Any], import_name: str,
        distribution: str | None = None,
    ) -> None:
        self.dumps, self.loads = dumps, loads
        self.import_name, self.distribution = import_name, distribution

    def small_open(self) -> Case:
        data, loads = self.dumps(values.SMALL), self.loads

        def run() -> tuple[Any, ...]:
            small = loads(data)
            return small["id"], small["name"], small["email"], small["age"], small["active"]

        return Case(run)

    def small_build(self) -> Case:
        dumps, loads = self.dumps, self.loads
        name, email = values.SMALL["name"], values.SMALL["email"]
        number, age = values.SMALL["id"], values.SMALL["age"]
        return Case(
            lambda: dumps(
                {"id": number, "name": name, "email": email, "age": age, "active": True}
            ),
            loads,
        )

    def rows_iterate(self) -> Case:
        data, loads = self.dumps(values.rows()), self.loads

        def run() -> float:
            total = 0.0
            for row in loads(data)["rows"]:
                total += row["id"] + row["score"]
            return total

        return Case(run)

    def rows_to_dicts(self) -> Case:
        data, loads = self.dumps(values.rows()), self.loads
        return Case(lambda: loads(data)["rows"])

    def rows_from_dicts(self) -> Case:
        dumps, loads, source = self.dumps, self.loads, values.rows()
        return Case(lambda: dumps(source), lambda result: loads(result)["rows"])

    def sparse_open(self) -> Case:
        data, loads = self.dumps(values.sparse()), self.loads

        def run() -> tuple[int, ...]:
            m = loads(data)
            return m["f3"], m["f50"], m["f111"], m["f200"], m["f255"]

        return Case(run)

    def blob_bytes(self) -> Case:
        data, loads = self.dumps(values.as_json({"data": values.blob()})), self.loads
        decode = base64.b64decode
        return Case(lambda: decode(loads(data)["data"]))

    def import_time(self) -> Measured:
        return Measured(lambda: fresh_process_seconds(f"import {self.import_name}"))

    def installed_size(self) -> Measured:
        return Measured(lambda: installed_bytes(self.import_name, self.distribution))
