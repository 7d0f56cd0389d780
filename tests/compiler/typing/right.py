"""Programs that type checkers must accept."""

from __future__ import annotations

from typing import Any, assert_type

import calc_capnp
import other_capnp

import capnwire


def reading(data: bytes) -> str:
    with calc_capnp.Person.from_bytes(data) as person:
        assert_type(person.name, str)
        assert_type(person.age, int)
        assert_type(person.f, float)
        assert_type(person.flag, bool)
        assert_type(person.data, bytes)
        assert_type(person.color, calc_capnp.Person.Color)
        assert_type(person.topColor, calc_capnp.Color)
        assert_type(person.g.x, int)
        assert_type(person.box.it, str)
        assert_type(person.box.more.x, str)
        assert_type(person.pair.t, calc_capnp.Person.Reader)
        assert_type(person.pair.u, str)
        assert_type(person.phone.number, str)
        assert_type(person.phone.property, str)
        assert_type(person.phone["import"], object)  # type: ignore[assert-type]  # Any
        assert_type(person.tags[0], str)
        assert_type(person.tags[0:1], list[str])
        assert_type(person.matrix[0][1], float)
        assert_type(person.other.a, int)
        assert_type(person.node.id, int)
        assert_type(person.shelf.a, str)
        assert_type(person.box.next.next.it, str)
        assert_type(person.calc, calc_capnp.Calculator.Client)
        for friend in person.friends:
            assert_type(friend, calc_capnp.Person.Reader)
        assert_type([color for color in person.colors], list[calc_capnp.Person.Color])
        which = person.which()
        if which == "nick":
            return person.nick
        if which == "boss":
            return person.boss.name
        if which == "inside":
            return person.inside.q
        return which


def inside(person: calc_capnp.Person.Reader) -> None:
    assert_type(person.node.nestedNodes[0].name, str)
    assert_type(person.json.object[0].value.number, float)
    assert_type(person.shelf.rows[0].b, calc_capnp.Person.Reader)


def takes_readers(reader: calc_capnp.Person.Reader, whole: capnwire.StructReader) -> None:
    takes_any(reader)


def takes_any(person: calc_capnp.Person) -> None:
    person.to_bytes()
    person.which()


def building() -> calc_capnp.Person.Builder:
    person = calc_capnp.Person.new_message(name="Ada", age=3, tags=["a"], color="dark")
    assert_type(person, calc_capnp.Person.Builder)
    takes_readers(person.as_reader(), person.as_reader())
    takes_any(person)
    person.name = "Ada"
    person.name = b"Ada"
    person.age = 4
    person.f = 1
    person.color = "light"
    person.color = 1
    person.color = calc_capnp.Person.Color.light
    person.topColor = calc_capnp.Color("red")
    person.tags = ["a", "b"]
    person.matrix = [[1.0, 2], [3.5]]
    person.colors = ["dark", 1, calc_capnp.Person.Color.light]
    person.friends = [{"name": "Bob", "g": {"x": 1}}, calc_capnp.Person.new_message()]
    person.phone = {"number": "1", "import": "x"}
    person.boss = person.as_reader()
    person.g = {"x": 3}
    person.g.x = 5
    person.box = {"it": "text", "more": {"x": "y"}}
    person.data = bytearray(3)
    person.none = None
    person.any = "anything"
    person.other = other_capnp.Thing.new_message(a=1)
    assert_type(person.init("tags", 3)[0], str)
    assert_type(person.init("boss"), calc_capnp.Person.Builder)
    friends = person.init("friends", 2)
    friends[0].name = "Eve"
    friends[1] = {"name": "Mallory"}
    person.matrix.init(0, 3)[2] = 1.5
    assert_type(friends.as_reader()[0], calc_capnp.Person.Reader)
    person.from_dict({"name": "x"})
    assert_type(person.copy(), calc_capnp.Person.Builder)
    assert_type(calc_capnp.Person.read_multiple(open("file", "rb")).__next__().name, str)
    assert_type(calc_capnp.Person.from_bytes(person.to_bytes(), builder=True), calc_capnp.Person.Builder)
    return person


def generics(data: bytes) -> None:
    box = calc_capnp.Box[capnwire.types.Text].new_message(it="x", more={"x": "y"})
    assert_type(box.it, str)
    assert_type(box.init("next").init("next").it, str)
    box.next = {"it": "z", "next": {"w": "u"}}
    assert_type(box["class"], object)  # type: ignore[assert-type]  # Any
    with calc_capnp.Box[calc_capnp.Person].from_bytes(data) as of_person:
        assert_type(of_person.it, calc_capnp.Person.Reader)
        assert_type(of_person.more.x.name, str)
    people = calc_capnp.Box[calc_capnp.Person].new_message()
    people.it = {"name": "Ada"}
    people.it = calc_capnp.Person.new_message()
    people.init("more").x = {"name": "Eve"}
    calc_capnp.Box[calc_capnp.Calculator].new_message(it=Plain())
    shelf = other_capnp.Shelf[capnwire.types.Data, calc_capnp.Person].new_message(a=b"x")
    assert_type(shelf.a, bytes)
    shelf.rows = [{"b": {"name": "x"}}]
    assert_type(shelf.rows[0].b, calc_capnp.Person.Builder)
    shelf = other_capnp.Shelf[capnwire.types.Data, calc_capnp.Person].new_message(
        rows=[{"b": {"age": 4}}]
    )
    calc_capnp.Box[capnwire.list_of(capnwire.types.Text)].new_message(it=["x"])
    plain = calc_capnp.Box.new_message(it="anything")
    takes_box(plain, plain.as_reader())
    calc_capnp.Outer.Map[capnwire.types.Text, calc_capnp.Person].new_message(value={"age": 3})
    takes_map(calc_capnp.Outer.Map.new_message().as_reader())


def takes_map(map: calc_capnp.Outer.Map.Reader) -> None:
    assert_type(map.to_bytes(), bytes)


def takes_box(box: calc_capnp.Box, reader: calc_capnp.Box.Reader) -> None:
    assert_type(reader.it.as_text(), str)


async def storing(person: calc_capnp.Person.Reader, texts: calc_capnp.Texts.Client) -> None:
    store = person.store
    found = await store.get("key")
    assert_type(found.value, calc_capnp.Person.Reader)
    assert_type(found.box.it.name, str)
    await store.put(key="x", value={"name": "Ada"})
    await store.open().store.put("x", calc_capnp.Person.new_message())
    assert_type((await store.keep(it={"name": "x"})).it, str)
    assert_type((await texts.get("x")).value, str)
    await texts.ping()


class Shop(calc_capnp.Store.Server):
    def get(self, key: Any) -> tuple[str, calc_capnp.Box.Builder]:
        return "x", calc_capnp.Box.new_message()


class Shelves(calc_capnp.Texts.Server):
    def get(self, key: str) -> None:
        return None

    async def put(self, key: str, value: str) -> None:
        return None


def constants() -> None:
    assert_type(calc_capnp.preset.name, str)
    assert_type(calc_capnp.limit, int)
    assert_type(calc_capnp.sizes[1], int)
    assert_type(calc_capnp.Color.red.name, str | None)
    assert calc_capnp.Color.green == "green"
    assert int(calc_capnp.Color.red) == 0


class Plain(calc_capnp.Calculator.Server):
    def ping(self) -> None:
        pass

    def add(self, left: int, right: int) -> int:
        return left + right

    async def div(self, a: int, b: int) -> tuple[int, int]:
        return divmod(a, b)

    async def person(self, p: calc_capnp.Person.Reader) -> calc_capnp.Person.Builder:
        return p.as_builder()

    def sub(self) -> tuple[Plain, calc_capnp.Person.Builder]:
        person = calc_capnp.Person.new_message(boss={"calc": Plain()})
        person.calc = Plain()
        return Plain(), person

    async def byStruct(self, context: Any) -> None:
        context.results.init("box").init("it").name = context.params.name

    async def write(self, data: bytes) -> None:
        return None


async def serving() -> None:
    async with (
        capnwire.serve(Plain(), "tcp://127.0.0.1:0") as server,
        capnwire.connect(server.addresses[0]) as session,
    ):
        assert_type(session, capnwire.Session)
        try:
            await connecting(session)
        except capnwire.RemoteError as error:
            assert_type(error.kind, str)
        except capnwire.RpcError:
            pass
    with capnwire.connect_sync("unix:/run/calculator") as blocking:
        blocking.bootstrap(calc_capnp.Calculator).add(1, 2)


async def connecting(session: capnwire.Session) -> None:
    calculator = session.bootstrap(calc_capnp.Calculator)
    assert_type(calculator, calc_capnp.Calculator.Client)
    assert_type(calculator.cast_as(calc_capnp.Base), calc_capnp.Base.Client)
    assert_type(session.bootstrap(), Any)
    await calling(calculator)


async def calling(calculator: calc_capnp.Calculator.Client) -> None:
    results = await calculator.add(1, right=2)
    assert_type(results.sum, int)
    both = await calculator.div(a=1, b=2)
    assert_type(both.q + both.r, int)
    reply = calculator.sub()
    nested = await reply.calc.add(left=1, right=2)
    assert_type(nested.sum, int)
    assert_type(reply.pipeline.node.calc, calc_capnp.Calculator.Client)
    await reply.node.boss.calc.ping()
    person = await calculator.person({"name": "x"})
    assert_type(person.name, str)
    await calculator.write(b"x")
    request = calculator.add.request(left=3)
    request.params.right = 4
    assert_type((await request.send()).sum, int)
    boxed = await calculator.byStruct(name="x", age=3)
    assert_type(boxed.box.it.name, str)
    await calculator.person(p=calc_capnp.Person.new_message(calc=Plain()))
