//! The Rust client: `client [--limit-words N] address scenario…` runs each scenario on connections
//! of its own and prints one line of JSON for it.  N is the server's limit.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use capnp::capability::{FromClientHook, Promise};
use capnp::{Error, ErrorKind};
use capnp_rpc::rpc_twoparty_capnp::Side;
use capnp_rpc::{Disconnector, RpcSystem};
use capnwire_peers::peer_capnp::{callback, counter, named, peer, stranger, Kind, Resolution};
use capnwire_peers::{network, split_tcp, split_unix, Counting, Level, Options};
use futures::channel::oneshot;
use tokio::net::{TcpStream, UnixStream};

type Outcome<T = ()> = Result<T, Error>;

macro_rules! expect_equal {
    ($got:expr, $wanted:expr) => {{
        let (got, wanted) = ($got, $wanted);
        if got != wanted {
            let text = format!("{} is {got:?}, wanted {wanted:?}", stringify!($got));
            return Err(Error::failed(text));
        }
    }};
}

struct Connection {
    server: peer::Client,
    disconnector: Disconnector<Side>,
    system: tokio::task::JoinHandle<Outcome>,
}

async fn connect(address: &str) -> Outcome<Connection> {
    let halves = match address.strip_prefix("unix:") {
        Some(path) => split_unix(UnixStream::connect(path).await?),
        None => split_tcp(TcpStream::connect(address.strip_prefix("tcp://").unwrap()).await?),
    };
    let network = network(halves, Side::Client, 8 << 20);
    let mut system = RpcSystem::new(Box::new(network), None);
    let server = system.bootstrap(Side::Server);
    let disconnector = system.get_disconnector();
    Ok(Connection { server, disconnector, system: tokio::task::spawn_local(system) })
}

type Function = Box<dyn Fn(i64) -> Promise<i64, Error>>;

struct Calling {
    function: Function,
    alive: Rc<Level>,
}

impl callback::Server for Calling {
    async fn call(
        self: Rc<Self>, params: callback::CallParams, mut results: callback::CallResults,
    ) -> Outcome {
        let value = (self.function)(params.get()?.get_value()).await?;
        results.get().set_value(value);
        results.get().set_counter(Counting::client(&self.alive, "").cast_to());
        Ok(())
    }
}

fn echo(server: &peer::Client, value: i64) -> Promise<i64, Error> {
    let mut request = server.echo_int_request();
    request.get().set_value(value);
    let reply = request.send().promise;
    Promise::from_future(async move { Ok(reply.await?.get()?.get_value()) })
}

fn next(counter: &counter::Client) -> Promise<u32, Error> {
    let reply = counter.next_request().send().promise;
    Promise::from_future(async move { Ok(reply.await?.get()?.get_value()) })
}

fn next_named(named: &named::Client) -> Promise<u32, Error> {
    next(&named.clone().cast_to())
}

async fn name(named: &named::Client) -> Outcome<String> {
    let reply = named.name_request().send().promise.await?;
    Ok(reply.get()?.get_name()?.to_string()?)
}

fn call_held(server: &peer::Client) -> Promise<u32, Error> {
    let reply = server.call_held_request().send().promise;
    Promise::from_future(async move { Ok(reply.await?.get()?.get_value()) })
}

async fn hold(server: &peer::Client, counter: counter::Client) -> Outcome {
    let mut request = server.hold_request();
    request.get().set_counter(counter);
    request.send().promise.await.map(|_| ())
}

async fn get_named(server: &peer::Client, name: &str) -> Outcome<named::Client> {
    let mut request = server.get_named_request();
    request.get().set_name(name);
    request.send().promise.await?.get()?.get_named()
}

async fn late(server: &peer::Client) -> Outcome<counter::Client> {
    server.late_request().send().promise.await?.get()?.get_counter()
}

fn resolve_late(server: &peer::Client, how: Resolution) -> Promise<(), Error> {
    let mut request = server.resolve_late_request();
    request.get().set_how(how);
    let reply = request.send().promise;
    Promise::from_future(async move { reply.await.map(|_| ()) })
}

async fn wait_blocked(server: &peer::Client, count: u32) -> Outcome {
    let mut request = server.wait_blocked_request();
    request.get().set_count(count);
    request.send().promise.await.map(|_| ())
}

async fn wait_alive(server: &peer::Client, count: u32) -> Outcome {
    let mut request = server.wait_alive_request();
    request.get().set_count(count);
    request.send().promise.await.map(|_| ())
}

async fn expect_order(calls: Vec<Promise<u32, Error>>) -> Outcome {
    for (i, call) in calls.into_iter().enumerate() {
        expect_equal!(call.await?, i as u32);
    }
    Ok(())
}

async fn expect_failure<T>(
    call: impl Future<Output = Outcome<T>>, kind: ErrorKind, text: &str,
) -> Outcome {
    match call.await {
        Ok(_) => Err(Error::failed(format!("no exception, wanted {kind:?}: {text}"))),
        Err(error) if error.kind == kind && error.extra.contains(text) => Ok(()),
        Err(error) => Err(Error::failed(format!(
            "{:?}: {}, wanted {kind:?}: {text}", error.kind, error.extra
        ))),
    }
}

struct Run {
    address: String,
    limit_words: usize,
    server: peer::Client,
    system: RefCell<Option<tokio::task::JoinHandle<Outcome>>>,
    alive: Rc<Level>,
}

impl Run {
    fn own(&self) -> counter::Client {
        Counting::client(&self.alive, "").cast_to()
    }

    fn callback(&self, function: Function) -> callback::Client {
        capnp_rpc::new_client(Calling { function, alive: self.alive.clone() })
    }

    async fn echo_int(&self) -> Outcome {
        for value in [0, -1, i64::MIN, i64::MAX] {
            expect_equal!(echo(&self.server, value).await?, value);
        }
        Ok(())
    }

    async fn echo_text(&self) -> Outcome {
        for text in ["", "plain", "Ünïcødé ✓ 😀"] {
            let mut request = self.server.echo_text_request();
            request.get().set_value(text);
            let response = request.send().promise.await?;
            expect_equal!(response.get()?.get_value()?.to_str()?, text);
        }
        Ok(())
    }

    async fn echo_data(&self) -> Outcome {
        for size in [0, 1, 256, 1_000_000] {
            let data: Vec<u8> = (0..size).map(|i| (i % 256) as u8).collect();
            let mut request = self.server.echo_data_request();
            request.get().set_value(&data);
            let response = request.send().promise.await?;
            expect_equal!(response.get()?.get_value()? == data, true);
        }
        Ok(())
    }

    async fn burst(&self) -> Outcome {
        let calls: Vec<_> = (0..1000).map(|i| echo(&self.server, i)).collect();
        for (i, call) in calls.into_iter().enumerate() {
            expect_equal!(call.await?, i as i64);
        }
        Ok(())
    }

    async fn order(&self) -> Outcome {
        let named = get_named(&self.server, "order").await?;
        expect_order((0..100).map(|_| next_named(&named)).collect()).await
    }

    async fn pipeline(&self) -> Outcome {
        let mut request = self.server.get_named_request();
        request.get().set_name("early");
        let reply = request.send();
        let early = reply.pipeline.get_named();
        let (first, call) = (name(&early), next_named(&early));
        expect_equal!(first.await?, "early");
        expect_equal!(call.await?, 0);
        let named = reply.promise.await?.get()?.get_named()?;
        expect_equal!(next_named(&named).await?, 1);
        Ok(())
    }

    async fn pipeline_nested(&self) -> Outcome {
        let mut request = self.server.get_nested_request();
        request.get().set_name("deep");
        let reply = request.send();
        expect_equal!(name(&reply.pipeline.get_outer().get_inner().get_named()).await?, "deep");
        let response = reply.promise.await?;
        let outer = response.get()?.get_outer()?;
        expect_equal!(outer.get_pad()?.to_str()?, "x");
        expect_equal!(outer.get_inner()?.get_pad()?.to_str()?, "x");
        Ok(())
    }

    async fn pipeline_failed(&self) -> Outcome {
        let mut request = self.server.fail_request();
        request.get().set_kind(Kind::Failed);
        request.get().set_text("no object");
        let reply = request.send();
        let call = next_named(&reply.pipeline.get_named());
        expect_failure(call, ErrorKind::Failed, "no object").await?;
        expect_failure(reply.promise, ErrorKind::Failed, "no object").await?;
        expect_equal!(echo(&self.server, 1).await?, 1);
        Ok(())
    }

    async fn inheritance(&self) -> Outcome {
        let counter: counter::Client = get_named(&self.server, "both").await?.cast_to();
        expect_equal!(next(&counter).await?, 0);
        expect_equal!(name(&counter.cast_to()).await?, "both");
        Ok(())
    }

    async fn unimplemented(&self) -> Outcome {
        let other: stranger::Client = self.server.clone().cast_to();
        let call = other.unknown_request().send().promise;
        expect_failure(call, ErrorKind::Unimplemented, "").await?;
        expect_equal!(echo(&self.server, 1).await?, 1);
        Ok(())
    }

    async fn exceptions(&self) -> Outcome {
        for (kind, wanted) in [
            (Kind::Failed, ErrorKind::Failed),
            (Kind::Overloaded, ErrorKind::Overloaded),
            (Kind::Disconnected, ErrorKind::Disconnected),
            (Kind::Unimplemented, ErrorKind::Unimplemented),
        ] {
            let mut request = self.server.fail_request();
            request.get().set_kind(kind);
            request.get().set_text("ä reason");
            expect_failure(request.send().promise, wanted, "ä reason").await?;
        }
        expect_equal!(echo(&self.server, 1).await?, 1);
        Ok(())
    }

    async fn pass_own(&self) -> Outcome {
        let mine = self.own();
        let mut request = self.server.echo_counter_request();
        request.get().set_counter(mine.clone());
        let back = request.send().promise.await?.get()?.get_counter()?;
        expect_equal!(next(&back).await?, 0);
        expect_equal!(next(&mine).await?, 1);
        Ok(())
    }

    async fn hold_drop(&self) -> Outcome {
        hold(&self.server, self.own()).await?;
        expect_equal!(call_held(&self.server).await?, 0);
        expect_equal!(call_held(&self.server).await?, 1);
        expect_equal!(self.alive.value.get(), 1);
        self.server.drop_request().send().promise.await?;
        self.alive.until(0).await;
        Ok(())
    }

    async fn release(&self) -> Outcome {
        wait_alive(&self.server, 0).await?;
        let first = get_named(&self.server, "first").await?;
        let second = get_named(&self.server, "second").await?;
        wait_alive(&self.server, 2).await?;
        drop((first, second));
        wait_alive(&self.server, 0).await
    }

    async fn null_capability(&self) -> Outcome {
        let response = self.server.echo_counter_request().send().promise.await?;
        expect_equal!(response.get()?.has_counter(), false);
        self.server.hold_request().send().promise.await?;
        expect_failure(call_held(&self.server), ErrorKind::Failed, "").await
    }

    async fn callback_plain(&self) -> Outcome {
        let seen = Rc::new(RefCell::new(vec![]));
        let noted = seen.clone();
        let mut request = self.server.call_back_request();
        request.get().set_callback(self.callback(Box::new(move |value| {
            noted.borrow_mut().push(value);
            Promise::ok(value * 10)
        })));
        request.get().set_times(5);
        expect_equal!(request.send().promise.await?.get()?.get_sum(), 100);
        expect_equal!(seen.take(), vec![0, 1, 2, 3, 4]);
        Ok(())
    }

    async fn callback_reentrant(&self) -> Outcome {
        let server = self.server.clone();
        let mut request = self.server.call_back_request();
        let callback = self.callback(Box::new(move |value| echo(&server, value + 1)));
        request.get().set_callback(callback);
        request.get().set_times(5);
        expect_equal!(request.send().promise.await?.get()?.get_sum(), 15);
        Ok(())
    }

    async fn callback_fails(&self) -> Outcome {
        let mut request = self.server.call_back_request();
        let callback =
            self.callback(Box::new(|_| Promise::err(Error::failed("callback broke".into()))));
        request.get().set_callback(callback);
        request.get().set_times(1);
        expect_failure(request.send().promise, ErrorKind::Failed, "callback broke").await
    }

    async fn forward(&self) -> Outcome {
        let mut request = self.server.forward_request();
        let callback = self.callback(Box::new(|value| Promise::ok(value + 1)));
        request.get().set_callback(callback);
        request.get().set_value(41);
        let reply = request.send();
        let first = next(&reply.pipeline.get_counter());
        let response = reply.promise.await?;
        expect_equal!(response.get()?.get_value(), 42);
        expect_equal!(first.await?, 0);
        expect_equal!(next(&response.get()?.get_counter()?).await?, 1);
        Ok(())
    }

    async fn late(&self) -> Outcome {
        let counter = late(&self.server).await?;
        let mut calls = vec![next(&counter), next(&counter)];
        resolve_late(&self.server, Resolution::Fresh).await?;
        calls.push(next(&counter));
        expect_order(calls).await
    }

    async fn late_broken(&self) -> Outcome {
        let counter = late(&self.server).await?;
        let call = next(&counter);
        resolve_late(&self.server, Resolution::Broken).await?;
        expect_failure(call, ErrorKind::Failed, "late broke").await?;
        expect_failure(next(&counter), ErrorKind::Failed, "late broke").await
    }

    async fn late_param(&self) -> Outcome {
        let (sender, receiver) = oneshot::channel::<counter::Client>();
        let promise = capnp_rpc::new_future_client(async move { Ok(receiver.await.unwrap()) });
        hold(&self.server, promise).await?;
        let mut calls = vec![call_held(&self.server), call_held(&self.server)];
        expect_equal!(echo(&self.server, 1).await?, 1);
        let _ = sender.send(self.own());
        calls.push(call_held(&self.server));
        expect_order(calls).await
    }

    async fn late_param_drop(&self) -> Outcome {
        let (sender, receiver) = oneshot::channel::<counter::Client>();
        let promise = capnp_rpc::new_future_client(async move { Ok(receiver.await.unwrap()) });
        hold(&self.server, promise).await?;
        let _ = sender.send(self.own());
        expect_equal!(call_held(&self.server).await?, 0);
        self.server.drop_request().send().promise.await?;
        self.alive.until(0).await;
        Ok(())
    }

    async fn late_param_broken(&self) -> Outcome {
        let (sender, receiver) = oneshot::channel::<()>();
        let promise: counter::Client = capnp_rpc::new_future_client(async move {
            receiver.await.unwrap();
            Err(Error::failed("param broke".into()))
        });
        hold(&self.server, promise).await?;
        let call = call_held(&self.server);
        expect_equal!(echo(&self.server, 1).await?, 1);
        let _ = sender.send(());
        expect_failure(call, ErrorKind::Failed, "param broke").await
    }

    async fn embargo_answer(&self) -> Outcome {
        let mut request = self.server.echo_counter_request();
        request.get().set_counter(self.own());
        let reply = request.send();
        let early = reply.pipeline.get_counter();
        let mut calls = vec![next(&early), next(&early)];
        let response = reply.promise.await?;
        calls.push(next(&early)); // early is now our own object, but two calls are on their way
        calls.push(next(&early));
        expect_order(calls).await?;
        expect_equal!(next(&response.get()?.get_counter()?).await?, 4);
        Ok(())
    }

    async fn embargo_resolve(&self) -> Outcome {
        hold(&self.server, self.own()).await?;
        let counter = late(&self.server).await?;
        let mut calls = vec![next(&counter), next(&counter)];
        let resolved = resolve_late(&self.server, Resolution::Held);
        calls.push(next(&counter));
        resolved.await?;
        calls.push(next(&counter));
        calls.push(next(&counter));
        expect_order(calls).await?;
        self.server.drop_request().send().promise.await.map(|_| ())
    }

    async fn cancel(&self) -> Outcome {
        let call = self.server.block_request().send();
        wait_blocked(&self.server, 1).await?;
        drop(call);
        wait_blocked(&self.server, 0).await?;
        expect_equal!(echo(&self.server, 1).await?, 1);
        Ok(())
    }

    // Connection two holds what connection one is given, and calls it: the server forwards.
    async fn relay(&self) -> Outcome {
        let other = connect(&self.address).await?;
        hold(&other.server, self.own()).await?;
        expect_equal!(call_held(&self.server).await?, 0);
        let response = self.server.held_request().send().promise.await?;
        let through = response.get()?.get_counter()?;
        expect_equal!(call_held(&other.server).await?, 1);
        expect_equal!(next(&through).await?, 2);
        // And the other way round: this process forwards from one connection to the other.
        let named = get_named(&self.server, "relayed").await?;
        hold(&other.server, named.cast_to()).await?;
        expect_equal!(call_held(&self.server).await?, 0);
        self.server.drop_request().send().promise.await?;
        other.disconnector.await
    }

    async fn client_gone(&self) -> Outcome {
        let other = connect(&self.address).await?;
        let call = other.server.block_request().send();
        wait_blocked(&self.server, 1).await?;
        other.disconnector.await?;
        wait_blocked(&self.server, 0).await?;
        drop(call);
        Ok(())
    }

    async fn stream(&self) -> Outcome {
        let sink = self.server.open_sink_request().send().promise.await?.get()?.get_sink()?;
        for i in 0..500 {
            let mut request = sink.write_request();
            request.get().set_index(i);
            request.get().set_bytes(&[0; 4096]);
            request.send().await?;
        }
        let done = sink.done_request().send().promise.await?;
        expect_equal!(done.get()?.get_writes(), 500);
        expect_equal!(done.get()?.get_total(), 500 * 4096);
        expect_equal!(done.get()?.get_in_order(), true);
        Ok(())
    }

    async fn stream_error(&self) -> Outcome {
        let sink = self.server.open_sink_request().send().promise.await?.get()?.get_sink()?;
        let mut writes = vec![];
        for i in 0..3 {
            let mut request = sink.write_request();
            request.get().set_index(i);
            request.get().set_bytes(if i == 1 { &[] } else { b"0123456789" });
            writes.push(request.send());
        }
        let done = sink.done_request().send().promise;
        expect_failure(done, ErrorKind::Failed, "empty block").await
    }

    async fn measure(&self, bytes: usize) -> Outcome<usize> {
        let mut request = self.server.measure_request();
        request.get().init_value(bytes as u32);
        Ok(request.send().promise.await?.get()?.get_bytes() as usize)
    }

    async fn size_limit(&self) -> Outcome {
        let under = (self.limit_words - 256) * 8;
        expect_equal!(self.measure(under).await?, under);
        expect_equal!(self.measure(under).await?, under);
        expect_equal!(self.measure((self.limit_words + 256) * 8).await.is_err(), true);
        let other = connect(&self.address).await?;
        expect_equal!(echo(&other.server, 1).await?, 1);
        Ok(())
    }

    async fn big_result(&self) -> Outcome {
        let mut request = self.server.big_request();
        request.get().set_bytes(3_000_000);
        let response = request.send().promise.await?;
        let got = response.get()?.get_value()?;
        expect_equal!(got.len(), 3_000_000);
        expect_equal!(got.iter().enumerate().all(|(i, byte)| *byte == (i % 251) as u8), true);
        Ok(())
    }

    async fn quit(&self) -> Outcome {
        let named = get_named(&self.server, "gone").await?;
        let blocked = self.server.block_request().send();
        let pending = next(&blocked.pipeline.get_counter());
        let call = self.server.quit_request().send().promise;
        expect_failure(call, ErrorKind::Disconnected, "").await?;
        expect_failure(pending, ErrorKind::Disconnected, "").await?;
        expect_failure(next_named(&named), ErrorKind::Disconnected, "").await?;
        let system = self.system.take().unwrap();
        let _ = system.await;
        Ok(())
    }
}

type Running<'a> = Pin<Box<dyn Future<Output = Outcome> + 'a>>;

macro_rules! scenarios {
    ($run:ident, $name:ident, $($scenario:literal => $method:ident,)*) => {
        match $name {
            $($scenario => Box::pin($run.$method()),)*
            _ => Box::pin(async { Err(Error::failed("no such scenario".into())) }),
        }
    };
}

fn start<'a>(run: &'a Run, name: &str) -> Running<'a> {
    scenarios! {run, name,
        "echo_int" => echo_int,
        "echo_text" => echo_text,
        "echo_data" => echo_data,
        "burst" => burst,
        "order" => order,
        "pipeline" => pipeline,
        "pipeline_nested" => pipeline_nested,
        "pipeline_failed" => pipeline_failed,
        "inheritance" => inheritance,
        "unimplemented" => unimplemented,
        "exceptions" => exceptions,
        "pass_own" => pass_own,
        "hold_drop" => hold_drop,
        "release" => release,
        "null_capability" => null_capability,
        "callback" => callback_plain,
        "callback_reentrant" => callback_reentrant,
        "callback_fails" => callback_fails,
        "forward" => forward,
        "late" => late,
        "late_broken" => late_broken,
        "late_param" => late_param,
        "late_param_drop" => late_param_drop,
        "late_param_broken" => late_param_broken,
        "embargo_answer" => embargo_answer,
        "embargo_resolve" => embargo_resolve,
        "cancel" => cancel,
        "relay" => relay,
        "client_gone" => client_gone,
        "stream" => stream,
        "stream_error" => stream_error,
        "size_limit" => size_limit,
        "big_result" => big_result,
        "quit" => quit,
    }
}

async fn run(options: &Options, name: &str) -> Outcome {
    let connection = connect(&options.address).await?;
    let run = Run {
        address: options.address.clone(),
        limit_words: options.limit_words,
        server: connection.server,
        system: RefCell::new(Some(connection.system)),
        alive: Rc::default(),
    };
    start(&run, name).await
}

fn main() {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for name in &options.names {
        let local = tokio::task::LocalSet::new();
        let outcome = local.block_on(&runtime, run(&options, name));
        let detail = outcome.as_ref().err().map(|error| format!("{error}")).unwrap_or_default();
        let detail: String = detail
            .chars()
            .map(|c| if c < ' ' || c == '"' || c == '\\' { '\'' } else { c })
            .collect();
        let ok = outcome.is_ok();
        println!("{{\"name\": \"{name}\", \"ok\": {ok}, \"detail\": \"{detail}\"}}");
    }
}
