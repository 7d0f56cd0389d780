// Needs `capnp` on PATH.
fn main() {
    capnpc::CompilerCommand::new()
        .src_prefix("..")
        .file("../peer.capnp")
        .run()
        .expect("capnp compile");
}
