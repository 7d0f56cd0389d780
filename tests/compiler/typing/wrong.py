"""Programs that type checkers must refuse, at each line that says so."""

from __future__ import annotations

import calc_capnp
import other_capnp

import capnwire


def reading(person: calc_capnp.Person.Reader) -> None:
    person.nam  # refused
    person.name + 1  # refused
    person.name = "x"  # refused
    person.tags[0] + 1  # refused
    person.tags["x"]  # refused
    person.g.z  # refused
    person.init("tags", 3)  # refused
    if person.which() == "nobody":  # refused
        pass
    number: int = person.box.it  # refused
    person.color.purple  # refused
    calc_capnp.Person.Color.purple  # refused
    person.node.nothing  # refused
    person.node.id + "x"  # refused
    person.json.number + "x"  # refused
    person.shelf.a + 1  # refused
    person.shelf.rows[0].b.nam  # refused
    person.box.next.it + 1  # refused
    person.store.nothing  # refused


def generics(data: bytes) -> None:
    calc_capnp.Box[5]  # refused
    calc_capnp.Box["Text"]  # refused
    calc_capnp.Box[capnwire.types.Text, capnwire.types.Text]  # refused
    calc_capnp.Person[capnwire.types.Text].nothing  # refused
    other_capnp.Shelf[capnwire.types.Text]  # refused
    calc_capnp.Box[capnwire.types.Text].new_message(it=5)  # refused
    calc_capnp.Box[capnwire.types.Text].new_message(more={"z": 5})  # refused
    calc_capnp.Outer.Map[capnwire.types.Text, capnwire.types.Data].new_message(value="x")  # refused
    calc_capnp.Outer.Map[capnwire.types.Text]  # refused
    calc_capnp.Box[capnwire.types.Text].from_bytes(data).it + 1  # refused
    box = calc_capnp.Box[calc_capnp.Person].new_message()
    box.it = "text"  # refused
    box.it = {"nam": "x"}  # refused
    box.next = {"item": "text"}  # refused
    box.next = calc_capnp.Box[capnwire.types.Text].new_message()  # refused
    box.it.nam  # refused


async def storing(person: calc_capnp.Person.Reader) -> None:
    await person.store.get(5)  # refused
    await person.store.put("x", "y")  # refused
    (await person.store.get("x")).value + "x"  # refused
    await person.store.keep(it="x")  # refused


def building(person: calc_capnp.Person.Builder) -> None:
    person.nam = "x"  # refused
    person.name = 3  # refused
    person.age = "x"  # refused
    person.flag = "true"  # refused
    person.color = "purple"  # refused
    person.color = calc_capnp.Color.red  # refused
    person.tags = [1, 2]  # refused
    person.tags = 3  # refused
    person.matrix = [1.0]  # refused
    person.friends = [{"nam": "Bob"}]  # refused
    person.phone = {"number": 1}  # refused
    person.phone = calc_capnp.Person.new_message()  # refused
    person.boss = 5  # refused
    person.data = "text"  # refused
    person.g = {"z": 3}  # refused
    person.none = 3  # refused
    person.init("tag", 3)  # refused
    person.init("tags", "3")  # refused
    person.init("tags")  # refused
    person.box = {"it": 5}  # refused
    person.box = {"more": {"x": 5}}  # refused
    person.box = {"next": {"it": 5}}  # refused
    person.shelf = {"rows": [{"b": {"nam": "x"}}]}  # refused
    person.init("name")  # refused
    person.init("boss", 3)  # refused
    person.init("age")  # refused
    person.init("box").init("next", 1)  # refused
    person.friends[0] = 5  # refused
    person.as_reader().name = "x"  # refused
    calc_capnp.Person.new_message(nam="x")  # refused
    calc_capnp.Person.new_message(name=3)  # refused
    calc_capnp.Person.new_message(g={"x": "y"})  # refused
    calc_capnp.Color("purple")  # refused
    calc_capnp.Nothing  # refused
    text: str = calc_capnp.limit  # refused


class Bad(calc_capnp.Calculator.Server):
    def add(self, left: int, right: int) -> str:  # refused
        return "x"

    async def div(self, a: int, b: int) -> int:  # refused
        return 1

    def write(self, data: bytes) -> int:  # refused
        return 1


async def connecting(session: capnwire.Session) -> None:
    session.bootstrap(calc_capnp.Calculator).nothing()  # refused
    session.bootstrap(calc_capnp.Calculator).cast_as(calc_capnp.Base).add(1, 2)  # refused


async def calling(calculator: calc_capnp.Calculator.Client) -> None:
    await calculator.subtract(1, 2)  # refused
    await calculator.add("1", 2)  # refused
    await calculator.add(1, 2, 3)  # refused
    await calculator.add(lef=1)  # refused
    (await calculator.add(1, 2)).total  # refused
    calculator.sub().node.name  # refused
    calculator.sub().calc.nothing()  # refused
    await calculator.person(5)  # refused
