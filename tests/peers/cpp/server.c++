// The C++ server: `server [--limit-words N] address` prints its address and serves until its
// standard input ends.

#include <unistd.h>

#include <thread>

#include "common.h"

namespace peer {

class Collecting final : public Sink::Server {
public:
  kj::Promise<void> write(WriteContext context) override {
    auto params = context.getParams();
    KJ_REQUIRE(params.getBytes().size() > 0, "empty block");
    inOrder = inOrder && params.getIndex() == writes;
    writes++;
    total += params.getBytes().size();
    return kj::READY_NOW;
  }
  kj::Promise<void> done(DoneContext context) override {
    auto results = context.getResults();
    results.setWrites(writes);
    results.setTotal(total);
    results.setInOrder(inOrder);
    return kj::READY_NOW;
  }

private:
  uint32_t writes = 0;
  uint64_t total = 0;
  bool inOrder = true;
};

class Serving final : public Peer::Server {
public:
#if CAPNP_VERSION >= 1000000
  // What the schema annotation c++.capnp:allowCancellation does, for `block` alone.
  DispatchCallResult dispatchCall(
      uint64_t interfaceId, uint16_t methodId,
      capnp::CallContext<capnp::AnyPointer, capnp::AnyPointer> context) override {
    auto result = Peer::Server::dispatchCall(interfaceId, methodId, context);
    if (interfaceId == capnp::typeId<Peer>() && methodId == 17) result.allowCancellation = true;
    return result;
  }
#endif

  kj::Promise<void> echoInt(EchoIntContext context) override {
    context.getResults().setValue(context.getParams().getValue());
    return kj::READY_NOW;
  }
  kj::Promise<void> echoText(EchoTextContext context) override {
    context.getResults().setValue(context.getParams().getValue());
    return kj::READY_NOW;
  }
  kj::Promise<void> echoData(EchoDataContext context) override {
    context.getResults().setValue(context.getParams().getValue());
    return kj::READY_NOW;
  }
  kj::Promise<void> measure(MeasureContext context) override {
    context.getResults().setBytes(context.getParams().getValue().size());
    return kj::READY_NOW;
  }
  kj::Promise<void> big(BigContext context) override {
    auto size = context.getParams().getBytes();
    auto data = context.getResults().initValue(size);
    for (uint32_t i = 0; i < size; i++) data[i] = i % 251;
    return kj::READY_NOW;
  }

  kj::Promise<void> fail(FailContext context) override {
    auto params = context.getParams();
    kj::throwFatalException(kj::Exception(
        static_cast<kj::Exception::Type>(params.getKind()), __FILE__, __LINE__,
        kj::heapString(params.getText())));
  }
  kj::Promise<void> getNamed(GetNamedContext context) override {
    context.getResults().setNamed(
        kj::heap<Counting>(alive, context.getParams().getName().cStr()));
    return kj::READY_NOW;
  }
  kj::Promise<void> getNested(GetNestedContext context) override {
    auto outer = context.getResults().initOuter();
    outer.setPad("x");
    outer.initInner().setPad("x");
    outer.getInner().setNamed(kj::heap<Counting>(alive, context.getParams().getName().cStr()));
    return kj::READY_NOW;
  }
  kj::Promise<void> echoCounter(EchoCounterContext context) override {
    if (context.getParams().hasCounter()) {
      context.getResults().setCounter(context.getParams().getCounter());
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> callBack(CallBackContext context) override {
    auto params = context.getParams();
    return callFrom(params.getCallback(), 0, params.getTimes(), 0)
        .then([context](int64_t sum) mutable { context.getResults().setSum(sum); });
  }
  kj::Promise<void> forward(ForwardContext context) override {
    auto params = context.getParams();
    auto request = params.getCallback().callRequest();
    request.setValue(params.getValue());
    return context.tailCall(kj::mv(request));
  }

  kj::Promise<void> hold(HoldContext context) override {
    if (context.getParams().hasCounter()) {
      heldCounter = context.getParams().getCounter();
    } else {
      heldCounter = nullptr;
    }
    return kj::READY_NOW;
  }
  kj::Promise<void> held(HeldContext context) override {
    context.getResults().setCounter(heldCounter);
    return kj::READY_NOW;
  }
  kj::Promise<void> callHeld(CallHeldContext context) override {
    return heldCounter.nextRequest().send().then([context](auto response) mutable {
      context.getResults().setValue(response.getValue());
    });
  }
  kj::Promise<void> drop(DropContext context) override {
    heldCounter = nullptr;
    return kj::READY_NOW;
  }

  kj::Promise<void> late(LateContext context) override {
    auto paf = kj::newPromiseAndFulfiller<Counter::Client>();
    promised.push_back(kj::mv(paf.fulfiller));
    context.getResults().setCounter(Counter::Client(kj::mv(paf.promise)));
    return kj::READY_NOW;
  }
  kj::Promise<void> resolveLate(ResolveLateContext context) override {
    for (auto& fulfiller : promised) {
      switch (context.getParams().getHow()) {
        case Resolution::FRESH: fulfiller->fulfill(kj::heap<Counting>(alive)); break;
        case Resolution::HELD: fulfiller->fulfill(Counter::Client(heldCounter)); break;
        case Resolution::BROKEN: fulfiller->reject(KJ_EXCEPTION(FAILED, "late broke")); break;
      }
    }
    promised.clear();
    return kj::READY_NOW;
  }

  kj::Promise<void> block(BlockContext context) override {
#if CAPNP_VERSION < 1000000
    context.allowCancellation();
#endif
    blocked.add(1);
    return kj::Promise<void>(kj::NEVER_DONE).attach(kj::defer([this] { blocked.add(-1); }));
  }
  kj::Promise<void> waitBlocked(WaitBlockedContext context) override {
    return blocked.until(context.getParams().getCount());
  }
  kj::Promise<void> waitAlive(WaitAliveContext context) override {
    return alive.until(context.getParams().getCount());
  }

  kj::Promise<void> openSink(OpenSinkContext context) override {
    context.getResults().setSink(kj::heap<Collecting>());
    return kj::READY_NOW;
  }
  kj::Promise<void> quit(QuitContext) override { _exit(0); }

private:
  kj::Promise<int64_t> callFrom(Callback::Client callback, uint32_t at, uint32_t times, int64_t sum) {
    if (at == times) return sum;
    auto request = callback.callRequest();
    request.setValue(at);
    return request.send().then([this, at, times, sum, callback = kj::mv(callback)](auto response) mutable {
      return callFrom(kj::mv(callback), at + 1, times, sum + response.getValue());
    });
  }

  Level blocked, alive;
  Counter::Client heldCounter = nullptr;
  std::vector<kj::Own<kj::PromiseFulfiller<Counter::Client>>> promised;
};

struct Connection {
  Connection(kj::Own<kj::AsyncIoStream> stream, uint64_t limitWords, Peer::Client bootstrap)
      : stream(kj::mv(stream)),
        network(*this->stream, capnp::rpc::twoparty::Side::SERVER,
                capnp::ReaderOptions{limitWords, 64}),
        system(capnp::makeRpcServer(network, kj::mv(bootstrap))) {}

  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> system;
};

struct Listening final : public kj::TaskSet::ErrorHandler {
  void taskFailed(kj::Exception&& exception) override { KJ_LOG(ERROR, exception); }

  kj::Promise<void> acceptFrom(
      kj::ConnectionReceiver& listener, uint64_t limitWords, Peer::Client bootstrap) {
    return listener.accept().then([this, &listener, limitWords, bootstrap](kj::Own<kj::AsyncIoStream> stream) mutable {
      auto connection = kj::heap<Connection>(kj::mv(stream), limitWords, bootstrap);
      auto gone = connection->network.onDisconnect();
      connections.add(gone.attach(kj::mv(connection)));
      return acceptFrom(listener, limitWords, bootstrap);
    });
  }

  kj::TaskSet connections{*this};
};

int serve(Options options) {
  auto io = kj::setupAsyncIo();
  auto listener = parseAddress(io, options.address)->listen();
  if (options.address.rfind("tcp://", 0) == 0) {
    printf("tcp://127.0.0.1:%u\n", listener->getPort());
  } else {
    printf("%s\n", options.address.c_str());
  }
  fflush(stdout);
  std::thread([] {
    char byte;
    while (read(0, &byte, 1) > 0) {}
    _exit(0);
  }).detach();
  Listening listening;
  listening.acceptFrom(*listener, options.limitWords, kj::heap<Serving>()).wait(io.waitScope);
  return 0;
}

}  // namespace peer

int main(int argc, char** argv) { return peer::serve(peer::parseOptions(argc, argv)); }
