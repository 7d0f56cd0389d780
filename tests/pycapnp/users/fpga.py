"""python-fpga-interchange: a packed device file, read with raised limits and reflected on."""

import gzip
import io
import os

import capnp
import capnp.lib.capnp

capnp.remove_import_hook()
schema = capnp.load(os.path.join(os.path.dirname(__file__), "device.capnp"))


def build(rows):
    device = schema.Device.new_message()
    device.name = "part"
    names = device.init("strList", rows)
    for n in range(rows):
        names[n] = f"name{n}"
    kinds = device.init("tileTypes", 3)
    for n in range(3):
        kinds[n].name = n
        wires = kinds[n].init("wires", 20)
        for k in range(20):
            wires[k] = n * 20 + k
        pips = kinds[n].init("pips", 10)
        for k in range(10):
            pip = pips[k]
            pip.wire0, pip.wire1, pip.directional = k, k + 1, bool(k % 2)
            if k % 3 == 0:
                cells = pip.init("pseudoCells", 1)
                cells[0].bel = k
                pins = cells[0].init("pins", 2)
                pins[0], pins[1] = 1, 2
            else:
                pip.conventional = None
    tiles = device.init("tiles", rows)
    for n in range(rows):
        tile = tiles[n]
        tile.name, tile.type, tile.row, tile.col = n, n % 3, n // 10, n % 10
    nodes = device.init("nodes", rows)
    for n in range(rows):
        wires = nodes[n].init("wires", 3)
        for k in range(3):
            wires[k] = n + k
    return device


def references(struct):
    """Which fields refer to strings, by the annotations of the schema."""
    found = {}
    for field in struct.schema.fields_list:
        proto = field.proto
        for annotation in proto.annotations:
            value = annotation.value.struct.as_struct(schema.StringRef)
            found[proto.name] = [str(value.type), value.field]
    return found


def main(scale):
    device = build(150 * scale)
    buffer = gzip.compress(device.to_bytes_packed(), mtime=0)
    with gzip.GzipFile(fileobj=io.BytesIO(buffer)) as file:
        read = schema.Device.from_bytes_packed(
            file.read(), traversal_limit_in_words=2**63 - 1, nesting_limit=1024
        )
    strings = list(read.strList)
    pips = []
    for kind in read.tileTypes:
        for pip in kind.pips:
            which = pip.which()
            if which == "conventional":
                pips.append([pip.wire0, pip.wire1, pip.directional])
            else:
                pips.append([cell.bel for cell in getattr(pip, which)])
    tiles = {}
    for tile in read.tiles:
        tiles[strings[tile.name]] = [tile.type, tile.row, tile.col]
    wires = sum(wire for node in read.nodes for wire in node.wires)
    by_id = capnp.lib.capnp._global_schema_parser.modules_by_id
    id = schema.Device.schema.node.id
    return [
        pips, tiles, wires, references(schema.Device.TileType),
        list(schema.Device.Pip.schema.union_fields),
        list(schema.Device.Pip.schema.non_union_fields),
        by_id[id].schema.node.displayName, id,
        [field.proto.slot.type.which() for field in schema.Device.schema.fields_list],
        schema.Device.schema.fields["tiles"].schema.elementType.node.id
        == schema.Device.Tile.schema.node.id,
    ]
