//! The Rust server: `server [--limit-words N] address` prints its address and serves until its
//! standard input ends.

use std::cell::{Cell, RefCell};
use std::io::Read;
use std::rc::Rc;

use capnp::capability::FromClientHook;
use capnp::{Error, ErrorKind};
use capnp_rpc::rpc_twoparty_capnp::Side;
use capnp_rpc::RpcSystem;
use capnwire_peers::peer_capnp::{counter, peer, sink, Kind, Resolution};
use capnwire_peers::{network, split_tcp, split_unix, Counting, Level, Options, Reading, Writing};
use futures::channel::oneshot;
use tokio::net::{TcpListener, UnixListener};

#[derive(Default)]
struct Collecting {
    writes: Cell<u32>,
    total: Cell<u64>,
    disorder: Cell<bool>,
}

impl sink::Server for Collecting {
    async fn write(self: Rc<Self>, params: sink::WriteParams) -> Result<(), Error> {
        let params = params.get()?;
        let size = params.get_bytes()?.len();
        if size == 0 {
            return Err(Error::failed("empty block".into()));
        }
        let index = self.writes.replace(self.writes.get() + 1);
        self.disorder.set(self.disorder.get() || params.get_index() != index);
        self.total.set(self.total.get() + size as u64);
        Ok(())
    }

    async fn done(
        self: Rc<Self>, _: sink::DoneParams, mut results: sink::DoneResults,
    ) -> Result<(), Error> {
        let mut results = results.get();
        results.set_writes(self.writes.get());
        results.set_total(self.total.get());
        results.set_in_order(!self.disorder.get());
        Ok(())
    }
}

type Promised = oneshot::Sender<Result<counter::Client, Error>>;

#[derive(Default)]
struct Serving {
    blocked: Rc<Level>,
    alive: Rc<Level>,
    held: RefCell<Option<counter::Client>>,
    promised: RefCell<Vec<Promised>>,
}

impl peer::Server for Serving {
    async fn echo_int(
        self: Rc<Self>, params: peer::EchoIntParams, mut results: peer::EchoIntResults,
    ) -> Result<(), Error> {
        results.get().set_value(params.get()?.get_value());
        Ok(())
    }

    async fn echo_text(
        self: Rc<Self>, params: peer::EchoTextParams, mut results: peer::EchoTextResults,
    ) -> Result<(), Error> {
        results.get().set_value(params.get()?.get_value()?);
        Ok(())
    }

    async fn echo_data(
        self: Rc<Self>, params: peer::EchoDataParams, mut results: peer::EchoDataResults,
    ) -> Result<(), Error> {
        results.get().set_value(params.get()?.get_value()?);
        Ok(())
    }

    async fn measure(
        self: Rc<Self>, params: peer::MeasureParams, mut results: peer::MeasureResults,
    ) -> Result<(), Error> {
        results.get().set_bytes(params.get()?.get_value()?.len() as u64);
        Ok(())
    }

    async fn big(
        self: Rc<Self>, params: peer::BigParams, mut results: peer::BigResults,
    ) -> Result<(), Error> {
        let data = results.get().init_value(params.get()?.get_bytes());
        data.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i % 251) as u8);
        Ok(())
    }

    async fn fail(
        self: Rc<Self>, params: peer::FailParams, _: peer::FailResults,
    ) -> Result<(), Error> {
        let text = params.get()?.get_text()?.to_string()?;
        let kind = match params.get()?.get_kind()? {
            Kind::Failed => ErrorKind::Failed,
            Kind::Overloaded => ErrorKind::Overloaded,
            Kind::Disconnected => ErrorKind::Disconnected,
            Kind::Unimplemented => ErrorKind::Unimplemented,
        };
        Err(Error { kind, extra: text })
    }

    async fn get_named(
        self: Rc<Self>, params: peer::GetNamedParams, mut results: peer::GetNamedResults,
    ) -> Result<(), Error> {
        let name = params.get()?.get_name()?.to_str()?;
        results.get().set_named(Counting::client(&self.alive, name));
        Ok(())
    }

    async fn get_nested(
        self: Rc<Self>, params: peer::GetNestedParams, mut results: peer::GetNestedResults,
    ) -> Result<(), Error> {
        let mut outer = results.get().init_outer();
        outer.set_pad("x");
        let mut inner = outer.init_inner();
        inner.set_pad("x");
        inner.set_named(Counting::client(&self.alive, params.get()?.get_name()?.to_str()?));
        Ok(())
    }

    async fn echo_counter(
        self: Rc<Self>, params: peer::EchoCounterParams, mut results: peer::EchoCounterResults,
    ) -> Result<(), Error> {
        if params.get()?.has_counter() {
            results.get().set_counter(params.get()?.get_counter()?);
        }
        Ok(())
    }

    async fn call_back(
        self: Rc<Self>, params: peer::CallBackParams, mut results: peer::CallBackResults,
    ) -> Result<(), Error> {
        let callback = params.get()?.get_callback()?;
        let mut sum = 0;
        for i in 0..params.get()?.get_times() {
            let mut request = callback.call_request();
            request.get().set_value(i.into());
            sum += request.send().promise.await?.get()?.get_value();
        }
        results.get().set_sum(sum);
        Ok(())
    }

    // By hand, for `tail_call` towards a remote object panics in this library.
    async fn forward(
        self: Rc<Self>, params: peer::ForwardParams, mut results: peer::ForwardResults,
    ) -> Result<(), Error> {
        let mut request = params.get()?.get_callback()?.call_request();
        request.get().set_value(params.get()?.get_value());
        results.set(request.send().promise.await?.get()?)
    }

    async fn hold(
        self: Rc<Self>, params: peer::HoldParams, _: peer::HoldResults,
    ) -> Result<(), Error> {
        let params = params.get()?;
        let counter = if params.has_counter() { Some(params.get_counter()?) } else { None };
        self.held.replace(counter);
        Ok(())
    }

    async fn held(
        self: Rc<Self>, _: peer::HeldParams, mut results: peer::HeldResults,
    ) -> Result<(), Error> {
        if let Some(counter) = &*self.held.borrow() {
            results.get().set_counter(counter.clone());
        }
        Ok(())
    }

    async fn call_held(
        self: Rc<Self>, _: peer::CallHeldParams, mut results: peer::CallHeldResults,
    ) -> Result<(), Error> {
        let held = self.held.borrow().clone();
        let held = held.ok_or_else(|| Error::failed("nothing is held".into()))?;
        let value = held.next_request().send().promise.await?.get()?.get_value();
        results.get().set_value(value);
        Ok(())
    }

    async fn drop(
        self: Rc<Self>, _: peer::DropParams, _: peer::DropResults,
    ) -> Result<(), Error> {
        self.held.replace(None);
        Ok(())
    }

    async fn late(
        self: Rc<Self>, _: peer::LateParams, mut results: peer::LateResults,
    ) -> Result<(), Error> {
        let (sender, receiver) = oneshot::channel();
        self.promised.borrow_mut().push(sender);
        let client: counter::Client =
            capnp_rpc::new_future_client(async move { receiver.await.unwrap() });
        results.get().set_counter(client);
        Ok(())
    }

    async fn resolve_late(
        self: Rc<Self>, params: peer::ResolveLateParams, _: peer::ResolveLateResults,
    ) -> Result<(), Error> {
        let how = params.get()?.get_how()?;
        for sender in self.promised.take() {
            let _ = sender.send(match how {
                Resolution::Fresh => Ok(Counting::client(&self.alive, "").cast_to()),
                Resolution::Held => {
                    self.held.borrow().clone().ok_or_else(|| Error::failed("nothing is held".into()))
                }
                Resolution::Broken => Err(Error::failed("late broke".into())),
            });
        }
        Ok(())
    }

    async fn block(
        self: Rc<Self>, _: peer::BlockParams, _: peer::BlockResults,
    ) -> Result<(), Error> {
        let _running = self.blocked.enter();
        futures::future::pending().await
    }

    async fn wait_blocked(
        self: Rc<Self>, params: peer::WaitBlockedParams, _: peer::WaitBlockedResults,
    ) -> Result<(), Error> {
        self.blocked.until(params.get()?.get_count()).await;
        Ok(())
    }

    async fn wait_alive(
        self: Rc<Self>, params: peer::WaitAliveParams, _: peer::WaitAliveResults,
    ) -> Result<(), Error> {
        self.alive.until(params.get()?.get_count()).await;
        Ok(())
    }

    async fn open_sink(
        self: Rc<Self>, _: peer::OpenSinkParams, mut results: peer::OpenSinkResults,
    ) -> Result<(), Error> {
        results.get().set_sink(capnp_rpc::new_client(Collecting::default()));
        Ok(())
    }

    async fn quit(
        self: Rc<Self>, _: peer::QuitParams, _: peer::QuitResults,
    ) -> Result<(), Error> {
        std::process::exit(0)
    }
}

async fn serve(options: Options) {
    let bootstrap: peer::Client = capnp_rpc::new_client(Serving::default());
    let start = |halves: (Reading, Writing)| {
        let network = network(halves, Side::Server, options.limit_words);
        let system = RpcSystem::new(Box::new(network), Some(bootstrap.clone().client));
        tokio::task::spawn_local(system);
    };
    if let Some(path) = options.address.strip_prefix("unix:") {
        let listener = UnixListener::bind(path).unwrap();
        println!("unix:{path}");
        loop {
            start(split_unix(listener.accept().await.unwrap().0));
        }
    }
    let address = options.address.strip_prefix("tcp://").unwrap();
    let listener = TcpListener::bind(address).await.unwrap();
    println!("tcp://{}", listener.local_addr().unwrap());
    loop {
        start(split_tcp(listener.accept().await.unwrap().0));
    }
}

fn main() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut vec![]);
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, serve(Options::parse()));
}
