"""nupic: models of many lists are written to files and read back, by an imported schema."""

import os
import sys
import tempfile

import capnp  # noqa: F401 - the import hook

sys.path.insert(0, os.path.dirname(__file__))
from network_capnp import Cells, Region


def fill(proto, size):
    proto.columns = size
    proto.threshold = 0.75
    proto.verbosity = -1
    proto.learning = True
    proto.name = "temporal memory"
    active = proto.init("activeCells", size)
    for n in range(size):
        active[n] = n * 3
    random = proto.init("random")
    random.seed = 42
    random.state = [n - 5 for n in range(20)]
    segments = proto.init("permanences", size // 2)
    for n in range(size // 2):
        segments[n].cell = n
        synapses = segments[n].init("synapses", 4)
        for k in range(4):
            synapse = synapses[k]
            synapse.presynaptic = n + k
            synapse.permanence = 0.25 * k


def main(scale):
    proto = Region.new_message()
    fill(proto.init("cells"), 200 * scale)
    params = proto.init("params", 2)
    params[0].key, params[0].value = "a", "1"
    params[1] = {"key": "b", "value": "2"}
    with tempfile.TemporaryFile() as file:
        proto.write(file)
        size = file.tell()
        file.seek(0)
        read = Region.read(file)
        cells = read.cells
        total = 0.0
        for segment in cells.permanences:
            for synapse in segment.synapses:
                total += synapse.presynaptic * synapse.permanence
        active = list(cells.activeCells)
    other = Cells.new_message()
    fill(other, 10)
    packed = other.to_bytes_packed()
    return [
        size, total, sum(active), len(active), list(cells.random.state), cells.random.seed,
        [[p.key, p.value] for p in read.params], packed.hex(), str(other),
        Cells.from_bytes_packed(packed).to_dict(),
    ]
