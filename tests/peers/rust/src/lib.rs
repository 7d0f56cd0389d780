//! What the Rust server and client share: addresses, objects that count, conditions to wait for.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use capnp::message::ReaderOptions;
use capnp::Error;
use capnp_rpc::rpc_twoparty_capnp::Side;
use capnp_rpc::twoparty::VatNetwork;
use futures::channel::oneshot;
use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::compat::TokioAsyncReadCompatExt;

capnp::generated_code!(pub mod peer_capnp);

use peer_capnp::{counter, named};

pub struct Options {
    pub address: String,  // tcp://host:port or unix:/path
    pub limit_words: usize,  // the server's receive limit
    pub names: Vec<String>,
}

impl Options {
    pub fn parse() -> Options {
        let mut words = std::env::args().skip(1);
        let mut options = Options { address: String::new(), limit_words: 8 << 20, names: vec![] };
        while let Some(word) = words.next() {
            if word == "--limit-words" {
                options.limit_words = words.next().unwrap().parse().unwrap();
            } else if options.address.is_empty() {
                options.address = word;
            } else {
                options.names.push(word);
            }
        }
        options
    }
}

pub type Reading = Box<dyn AsyncRead + Unpin>;
pub type Writing = Box<dyn AsyncWrite + Unpin>;

pub fn split_tcp(stream: TcpStream) -> (Reading, Writing) {
    stream.set_nodelay(true).unwrap();
    let (reader, writer) = stream.compat().split();
    (Box::new(reader), Box::new(writer))
}

pub fn split_unix(stream: UnixStream) -> (Reading, Writing) {
    let (reader, writer) = stream.compat().split();
    (Box::new(reader), Box::new(writer))
}

pub fn network(halves: (Reading, Writing), side: Side, limit_words: usize) -> VatNetwork<Reading> {
    let mut options = ReaderOptions::new();
    options.traversal_limit_in_words(Some(limit_words));
    VatNetwork::new(halves.0, halves.1, side, options)
}

/// A number to wait for: `until(n)` resolves once the value is n.
#[derive(Default)]
pub struct Level {
    pub value: Cell<u32>,
    waiting: RefCell<Vec<(u32, oneshot::Sender<()>)>>,
}

impl Level {
    fn set(&self, value: u32) {
        self.value.set(value);
        let waiting = self.waiting.take();
        for (wanted, sender) in waiting {
            if wanted == value {
                let _ = sender.send(());
            } else {
                self.waiting.borrow_mut().push((wanted, sender));
            }
        }
    }

    pub async fn until(&self, wanted: u32) {
        if self.value.get() != wanted {
            let (sender, receiver) = oneshot::channel();
            self.waiting.borrow_mut().push((wanted, sender));
            receiver.await.unwrap();
        }
    }

    /// Counts one more until the guard is dropped.
    pub fn enter(self: &Rc<Self>) -> Guard {
        self.set(self.value.get() + 1);
        Guard(self.clone())
    }
}

pub struct Guard(Rc<Level>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.set(self.0.value.get() - 1);
    }
}

pub struct Counting {
    _alive: Guard,
    name: String,
    count: Cell<u32>,
}

impl Counting {
    pub fn client(alive: &Rc<Level>, name: &str) -> named::Client {
        let (_alive, name) = (alive.enter(), name.to_string());
        capnp_rpc::new_client(Counting { _alive, name, count: Cell::new(0) })
    }
}

impl counter::Server for Counting {
    async fn next(
        self: Rc<Self>, _: counter::NextParams, mut results: counter::NextResults,
    ) -> Result<(), Error> {
        results.get().set_value(self.count.replace(self.count.get() + 1));
        Ok(())
    }
}

impl named::Server for Counting {
    async fn name(
        self: Rc<Self>, _: named::NameParams, mut results: named::NameResults,
    ) -> Result<(), Error> {
        results.get().set_name(&self.name[..]);
        Ok(())
    }
}
