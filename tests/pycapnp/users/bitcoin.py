"""Bitcoin Core's functional tests: pipelined calls over a Unix socket, a context of threads."""

import asyncio
import os
import tempfile

import capnp

mining = capnp.load(
    os.path.join(os.path.dirname(__file__), "mining.capnp"), imports=["/usr/include"]
)


class Thread(mining.Thread.Server):
    def __init__(self, name):
        self.name = name

    async def getName(self, **kwargs):
        return self.name


class ThreadMap(mining.ThreadMap.Server):
    async def makeThread(self, name, **kwargs):
        return Thread(name)


class Template(mining.BlockTemplate.Server):
    def __init__(self, size):
        self.size = size

    async def getBlock(self, context, **kwargs):
        return bytes(range(256)) * (self.size // 256)

    async def destroy(self, context, **kwargs):
        pass


class Mining(mining.Mining.Server):
    height = 0

    async def getTip(self, context, **kwargs):
        self.height += 1
        name = (await context.thread.getName()).result
        return {"hash": name.encode() * 4, "height": self.height}, True

    async def createNewBlock(self, context, options, **kwargs):
        return Template(options.reserve if options.useMempool else 256)


class Init(mining.Init.Server):
    async def construct(self, **kwargs):
        return ThreadMap()

    async def makeMining(self, context, **kwargs):
        return Mining()


async def serve(stream):
    await capnp.TwoPartyServer(stream, bootstrap=Init()).on_disconnect()


async def program(scale):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "node.sock")
        server = await capnp.AsyncIoStream.create_unix_server(serve, path)
        connection = await capnp.AsyncIoStream.create_unix_connection(path)
        client = capnp.TwoPartyClient(connection)
        init = client.bootstrap().cast_as(mining.Init)
        ctx = mining.Context.new_message()
        ctx.thread = init.construct().threadMap.makeThread("pythread").result
        node = init.makeMining(ctx).result
        tips = []
        for _ in range(25 * scale):
            tip = await node.getTip(ctx)
            tips.append([tip.result.hash.hex(), tip.result.height, tip.hasResult])
        template = node.createNewBlock(ctx, {"reserve": 4096}).result
        block = (await template.getBlock(ctx)).result
        small = (await node.createNewBlock(ctx, mining.Mining.Options(useMempool=False))).result
        smaller = (await small.getBlock(ctx)).result
        await template.destroy(ctx)
        name = (await ctx.thread.getName()).result
        client.close()
        server.close()
        return [tips[-1], len(tips), len(block), len(smaller), name, sorted(
            name for name in dir(node) if not name.startswith("_")
            and name in ("getTip", "createNewBlock")
        )]


def main(scale):
    return asyncio.run(capnp.run(program(scale)))
