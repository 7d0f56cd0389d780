"""zalf-rpm's mas: capabilities and AnyPointers over a socket; channels between components."""

import asyncio
import os
import socket

import capnp

fbp = capnp.load(os.path.join(os.path.dirname(__file__), "fbp.capnp"))


class Reader(fbp.Channel.Reader.Server):
    def __init__(self, channel):
        self.channel = channel

    async def read_context(self, context):
        if self.channel.queue:
            context.results.value = self.channel.queue.pop(0)
        else:
            context.results.done = None

    async def close(self, **kwargs):
        self.channel.closed += 1


class Writer(fbp.Channel.Writer.Server):
    def __init__(self, channel):
        self.channel = channel

    async def write_context(self, context):
        if context.params.which() == "value":
            self.channel.queue.append(context.params.value.as_struct(fbp.IP).as_builder())

    async def close(self, **kwargs):
        self.channel.closed += 1


class Channel(fbp.Channel.Server):
    def __init__(self):
        self.queue, self.closed = [], 0

    async def info(self, **kwargs):
        return "channel-1", "a channel"

    async def endpoints(self, **kwargs):
        return Reader(self), Writer(self)


class Model(fbp.Model.Server):
    async def run(self, weather, rest, _context, **kwargs):
        total = weather.as_struct(fbp.Weather).temperature
        days = 1
        while True:
            message = await rest.read()
            if message.which() == "done":
                break
            ip = message.value.as_struct(fbp.IP)
            entry = ip.content.as_struct(fbp.Weather)
            assert ip.attributes[0].value.as_text() == entry.station
            total += entry.temperature
            days += 1
        _context.results.sum = total
        _context.results.days = days


async def connect(bootstrap):
    left, right = socket.socketpair()
    left = await capnp.AsyncIoStream.create_connection(sock=left)
    right = await capnp.AsyncIoStream.create_connection(sock=right)
    server = capnp.TwoPartyServer(right, bootstrap=bootstrap)
    return capnp.TwoPartyClient(left), server


async def program(scale):
    channel = Channel()
    client, server = await connect(channel)
    remote = client.bootstrap().cast_as(fbp.Channel)
    info = await remote.info()
    identity = await remote.cast_as(fbp.Identifiable).info()
    ends = await remote.endpoints()
    writer = remote.endpoints().writer  # pipelined
    for day in range(30 * scale):
        request = writer.write_request()
        ip = request.value.as_struct(fbp.IP)
        attributes = ip.init("attributes", 1)
        attributes[0].key = "station"
        attributes[0].value = f"station {day}"
        ip.content = fbp.Weather.new_message(
            day=day, temperature=day * 0.5, station=f"station {day}"
        )
        await request.send()
    model_client, model_server = await connect(Model())
    model = model_client.bootstrap().cast_as(fbp.Model)
    result = await model.run(fbp.Weather.new_message(temperature=1.0), ends.reader)
    await asyncio.gather(ends.reader.close(), ends.writer.close())
    try:
        await model.run()
        failed = "no"
    except capnp.KjException as error:
        failed = error.type
    schema = fbp.Channel.schema
    return [
        info.id, identity.name, result.sum, result.days, channel.closed, failed,
        isinstance(schema, capnp.lib.capnp._InterfaceSchema), sorted(schema.method_names_inherited),
        result.to_dict(), ends._has("reader"),
    ]


def main(scale):
    return asyncio.run(capnp.run(program(scale)))
