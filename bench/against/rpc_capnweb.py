"""Cap'n Web (npm capnweb) in Node: sessions joined in memory."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from bench.against import Measured, Unavailable
from bench.harness import ROOT

NAME = "capnweb (Node)"
DISTRIBUTION = None
VERSION = "0.12.0"
FOLDER = ROOT / "build/capnweb"

PROGRAM = """
import { RpcSession, RpcTarget } from "capnweb";
class Echo extends RpcTarget { echo(n) { return n; } }
class End {
  constructor() { this.queue = []; this.waiter = null; }
  async send(message) { this.other.push(message); }
  push(message) {
    if (this.waiter) { const w = this.waiter; this.waiter = null; w(message); }
    else this.queue.push(message);
  }
  receive() {
    if (this.queue.length) return Promise.resolve(this.queue.shift());
    return new Promise(resolve => { this.waiter = resolve; });
  }
}
const a = new End(), b = new End(); a.other = b; b.other = a;
const server = new RpcSession(a, new Echo()), client = new RpcSession(b);
const stub = client.getRemoteMain();
const now = () => performance.now() / 1000;
if (await stub.echo(7) !== 7) throw new Error("wrong");
async function sequential(count) {
  let best = Infinity;
  for (let round = 0; round < 12; round++) {
    const start = now();
    for (let i = 0; i < count; i++) await stub.echo(7);
    best = Math.min(best, (now() - start) / count);
  }
  return best;
}
async function burst(count) {
  let best = Infinity;
  for (let round = 0; round < 25; round++) {
    const start = now();
    await Promise.all(Array.from({ length: count }, (_, n) => stub.echo(n)));
    best = Math.min(best, (now() - start) / count);
  }
  return best;
}
console.log(JSON.stringify({ tiny: await sequential(300), burst: await burst(1000) }));
process.exit(0);
"""


class Capnweb:
    def __init__(self) -> None:
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            raise Unavailable("Node and npm are not installed")
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "bench.mjs").write_text(PROGRAM)
        if not (FOLDER / "node_modules/capnweb").exists():
            done = subprocess.run(
                [npm, "install", "--silent", "--no-fund", f"capnweb@{VERSION}"], cwd=FOLDER,
                capture_output=True, text=True, check=False,
            )
            if done.returncode:
                raise Unavailable(f"npm cannot install capnweb: {done.stderr[-200:]}")

    def measured(self, name: str) -> float:
        done = subprocess.run(
            ["node", "bench.mjs"], cwd=FOLDER, capture_output=True, text=True, check=True,
        )
        return float(json.loads(done.stdout)[name])

    def memory_tiny(self) -> Measured:
        return Measured(lambda: self.measured("tiny"))

    def memory_burst_1000(self) -> Measured:
        return Measured(lambda: self.measured("burst"))


def adapter(folder: Path, events: int) -> Any:
    return Capnweb()
