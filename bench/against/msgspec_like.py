"""The rows with msgspec's typed structs, for either of its formats."""

from __future__ import annotations

from typing import Any

from bench import data as values
from bench.against import Case, Measured
from bench.harness import fresh_process_seconds, installed_bytes


class MsgspecLike:
    """Rows over one of msgspec's formats, decoding into `Struct` types; gc stays as it is."""

    def __init__(self, msgspec: Any, form: Any) -> None:
        self.encode, self.form = form.Encoder().encode, form
        self.small_type = msgspec.defstruct(
            "Small", [("id", int), ("name", str), ("email", str), ("age", int), ("active", bool)]
        )
        self.row_type = msgspec.defstruct("Row", [("id", int), ("name", str), ("score", float)])
        self.rows_type = msgspec.defstruct("Rows", [("rows", list[self.row_type])])
        self.blob_type = msgspec.defstruct("Blob", [("data", bytes)])
        self.sparse_type = msgspec.defstruct("Sparse", [(f"f{i}", int) for i in range(256)])

    def small_open(self) -> Case:
        data, decode = self.encode(values.SMALL), self.form.Decoder(self.small_type).decode

        def run() -> tuple[Any, ...]:
            small = decode(data)
            return small.id, small.name, small.email, small.age, small.active

        return Case(run)

    def small_build(self) -> Case:
        encode, kind, decode = self.encode, self.small_type, self.form.decode
        name, email = values.SMALL["name"], values.SMALL["email"]
        number, age = values.SMALL["id"], values.SMALL["age"]
        return Case(
            lambda: encode(kind(id=number, name=name, email=email, age=age, active=True)), decode
        )

    def rows_iterate(self) -> Case:
        data, decode = self.encode(values.rows()), self.form.Decoder(self.rows_type).decode

        def run() -> float:
            total = 0.0
            for row in decode(data).rows:
                total += row.id + row.score
            return total

        return Case(run)

    def rows_to_dicts(self) -> Case:
        data, decode = self.encode(values.rows()), self.form.Decoder().decode
        return Case(lambda: decode(data)["rows"])

    def rows_from_dicts(self) -> Case:
        encode, source, decode = self.encode, values.rows(), self.form.decode
        return Case(lambda: encode(source), lambda result: decode(result)["rows"])

    def sparse_open(self) -> Case:
        data, decode = self.encode(values.sparse()), self.form.Decoder(self.sparse_type).decode

        def run() -> tuple[int, ...]:
            m = decode(data)
            return m.f3, m.f50, m.f111, m.f200, m.f255

        return Case(run)

    def blob_bytes(self) -> Case:
        data = self.encode({"data": values.blob()})
        decode = self.form.Decoder(self.blob_type).decode
        return Case(lambda: decode(data).data)

    def import_time(self) -> Measured:
        return Measured(lambda: fresh_process_seconds("import msgspec"))

    def installed_size(self) -> Measured:
        return Measured(lambda: installed_bytes("msgspec", "msgspec"))
