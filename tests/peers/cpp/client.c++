// The C++ client: `client [--limit-words N] address scenario…` runs each scenario on connections
// of its own and prints one line of JSON for it.  N is the server's limit.

#include <map>

#include "common.h"

namespace peer {

#define EXPECT_EQUAL(got, wanted)                                            \
  do {                                                                       \
    auto got_ = (got);                                                       \
    auto wanted_ = (wanted);                                                 \
    KJ_REQUIRE(got_ == wanted_, "not equal", #got, #wanted, got_, wanted_);  \
  } while (false)

struct Connection {
  Connection(kj::AsyncIoContext& io, const Options& options)
      : stream(parseAddress(io, options.address)->connect().wait(io.waitScope)),
        network(*stream, capnp::rpc::twoparty::Side::CLIENT),
        system(capnp::makeRpcClient(network)) {}

  Peer::Client bootstrap() {
    capnp::MallocMessageBuilder message;
    auto id = message.initRoot<capnp::rpc::twoparty::VatId>();
    id.setSide(capnp::rpc::twoparty::Side::SERVER);
    return system.bootstrap(id).castAs<Peer>();
  }

  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> system;
};

class Calling final : public Callback::Server {
public:
  explicit Calling(std::function<kj::Promise<int64_t>(int64_t)> function, Level& alive)
      : function(function), alive(alive) {}

  kj::Promise<void> call(CallContext context) override {
    return function(context.getParams().getValue()).then([this, context](int64_t value) mutable {
      auto results = context.getResults();
      results.setValue(value);
      results.setCounter(kj::heap<Counting>(alive));
    });
  }

private:
  std::function<kj::Promise<int64_t>(int64_t)> function;
  Level& alive;
};

// What a scenario has at hand: a connection, the bootstrap object, and a level of own objects.
class Run {
public:
  Run(kj::AsyncIoContext& io, const Options& options)
      : io(io), options(options), scope(io.waitScope), connection(io, options),
        server(connection.bootstrap()) {}

  // ── helpers ───────────────────────────────────────────────────────────────────────────────────

  Counter::Client own() { return kj::heap<Counting>(alive); }

  Callback::Client callback(std::function<kj::Promise<int64_t>(int64_t)> function) {
    return kj::heap<Calling>(function, alive);
  }

  kj::Promise<int64_t> echo(Peer::Client peer, int64_t value) {
    auto request = peer.echoIntRequest();
    request.setValue(value);
    return request.send().then([](auto response) -> int64_t { return response.getValue(); });
  }

  kj::Promise<uint32_t> next(Counter::Client counter) {
    return counter.nextRequest().send().then(
        [](auto response) -> uint32_t { return response.getValue(); });
  }

  void expectOrder(std::vector<kj::Promise<uint32_t>>& calls) {
    for (uint32_t i = 0; i < calls.size(); i++) EXPECT_EQUAL(calls[i].wait(scope), i);
  }

  capnp::RemotePromise<Peer::GetNamedResults> getNamed(const char* name) {
    auto request = server.getNamedRequest();
    request.setName(name);
    return request.send();
  }

  void hold(Peer::Client peer, Counter::Client counter) {
    auto request = peer.holdRequest();
    request.setCounter(counter);
    request.send().wait(scope);
  }

  kj::Promise<uint32_t> callHeld(Peer::Client peer) {
    return peer.callHeldRequest().send().then(
        [](auto response) -> uint32_t { return response.getValue(); });
  }

  kj::Promise<void> resolveLate(Resolution how) {
    auto request = server.resolveLateRequest();
    request.setHow(how);
    return request.send().ignoreResult();
  }

  void waitBlocked(Peer::Client peer, uint32_t count) {
    auto request = peer.waitBlockedRequest();
    request.setCount(count);
    request.send().wait(scope);
  }

  void waitAlive(uint32_t count) {
    auto request = server.waitAliveRequest();
    request.setCount(count);
    request.send().wait(scope);
  }

  template <typename T>
  void expectFailure(kj::Promise<T>&& promise, kj::Exception::Type type, const char* text) {
    auto outcome = promise
        .then([](auto&&) { return std::string("no exception"); }, [=](kj::Exception&& exception) {
          std::string got = exception.getDescription().cStr();
          if (exception.getType() == type && got.find(text) != std::string::npos) {
            return std::string();
          }
          return std::string(kj::str(exception.getType(), ": ", got).cStr());
        })
        .wait(scope);
    KJ_REQUIRE(outcome.empty(), "wanted another exception", type, text, outcome.c_str());
  }

  // ── scenarios ─────────────────────────────────────────────────────────────────────────────────

  void echoInt() {
    for (int64_t value : {int64_t(0), int64_t(-1), INT64_MIN, INT64_MAX}) {
      EXPECT_EQUAL(echo(server, value).wait(scope), value);
    }
  }

  void echoText() {
    for (auto text : {"", "plain", "Ünïcødé ✓ 😀"}) {
      auto request = server.echoTextRequest();
      request.setValue(text);
      EXPECT_EQUAL(kj::heapString(request.send().wait(scope).getValue()), kj::heapString(text));
    }
  }

  void echoData() {
    for (size_t size : {0, 1, 256, 1000000}) {
      auto request = server.echoDataRequest();
      auto data = request.initValue(size);
      for (size_t i = 0; i < size; i++) data[i] = i % 256;
      auto response = request.send().wait(scope);
      auto got = response.getValue();
      EXPECT_EQUAL(got.size(), size);
      for (size_t i = 0; i < size; i++) KJ_REQUIRE(got[i] == i % 256, "differs", i);
    }
  }

  void burst() {
    std::vector<kj::Promise<int64_t>> calls;
    for (int64_t i = 0; i < 1000; i++) calls.push_back(echo(server, i));
    for (int64_t i = 0; i < 1000; i++) EXPECT_EQUAL(calls[i].wait(scope), i);
  }

  void order() {
    auto named = getNamed("order").wait(scope).getNamed();
    std::vector<kj::Promise<uint32_t>> calls;
    for (int i = 0; i < 100; i++) calls.push_back(next(named));
    expectOrder(calls);
  }

  void pipeline() {
    auto promise = getNamed("early");
    auto name = promise.getNamed().nameRequest().send();
    auto first = next(promise.getNamed());
    EXPECT_EQUAL(kj::heapString(name.wait(scope).getName()), kj::heapString("early"));
    EXPECT_EQUAL(first.wait(scope), 0u);
    auto named = promise.wait(scope).getNamed();
    EXPECT_EQUAL(next(named).wait(scope), 1u);
  }

  void pipelineNested() {
    auto request = server.getNestedRequest();
    request.setName("deep");
    auto promise = request.send();
    auto name = promise.getOuter().getInner().getNamed().nameRequest().send();
    EXPECT_EQUAL(kj::heapString(name.wait(scope).getName()), kj::heapString("deep"));
    auto response = promise.wait(scope);
    EXPECT_EQUAL(kj::heapString(response.getOuter().getPad()), kj::heapString("x"));
    EXPECT_EQUAL(kj::heapString(response.getOuter().getInner().getPad()), kj::heapString("x"));
  }

  void pipelineFailed() {
    auto request = server.failRequest();
    request.setKind(Kind::FAILED);
    request.setText("no object");
    auto promise = request.send();
    auto call = next(promise.getNamed());
    expectFailure(kj::mv(call), kj::Exception::Type::FAILED, "no object");
    expectFailure(promise.ignoreResult().then([] { return 0; }), kj::Exception::Type::FAILED,
                  "no object");
    EXPECT_EQUAL(echo(server, 1).wait(scope), 1);
  }

  void inheritance() {
    auto named = getNamed("both").wait(scope).getNamed();
    Counter::Client counter = named;
    EXPECT_EQUAL(next(counter).wait(scope), 0u);
    auto again = counter.castAs<Named>();
    auto response = again.nameRequest().send().wait(scope);
    EXPECT_EQUAL(kj::heapString(response.getName()), kj::heapString("both"));
  }

  void unimplemented() {
    auto call = server.castAs<Stranger>().unknownRequest().send();
    expectFailure(call.ignoreResult().then([] { return 0; }), kj::Exception::Type::UNIMPLEMENTED, "");
    EXPECT_EQUAL(echo(server, 1).wait(scope), 1);
  }

  void exceptions() {
    for (auto kind : {Kind::FAILED, Kind::OVERLOADED, Kind::DISCONNECTED, Kind::UNIMPLEMENTED}) {
      auto request = server.failRequest();
      request.setKind(kind);
      request.setText("ä reason");
      expectFailure(request.send().ignoreResult().then([] { return 0; }),
                    static_cast<kj::Exception::Type>(kind), "ä reason");
    }
    EXPECT_EQUAL(echo(server, 1).wait(scope), 1);
  }

  void passOwn() {
    auto mine = own();
    auto request = server.echoCounterRequest();
    request.setCounter(mine);
    auto back = request.send().wait(scope).getCounter();
    EXPECT_EQUAL(next(back).wait(scope), 0u);
    EXPECT_EQUAL(next(mine).wait(scope), 1u);
  }

  void holdDrop() {
    hold(server, own());
    EXPECT_EQUAL(callHeld(server).wait(scope), 0u);
    EXPECT_EQUAL(callHeld(server).wait(scope), 1u);
    EXPECT_EQUAL(alive.value, 1u);
    server.dropRequest().send().wait(scope);
    alive.until(0).wait(scope);
  }

  void release() {
    waitAlive(0);
    {
      auto first = getNamed("first").wait(scope).getNamed();
      auto second = getNamed("second").wait(scope).getNamed();
      waitAlive(2);
    }
    waitAlive(0);
  }

  void nullCapability() {
    auto response = server.echoCounterRequest().send().wait(scope);
    KJ_REQUIRE(!response.hasCounter(), "null came back as something");
    server.holdRequest().send().wait(scope);
    expectFailure(callHeld(server), kj::Exception::Type::FAILED, "");
  }

  void callBack() {
    std::vector<int64_t> seen;
    auto request = server.callBackRequest();
    request.setCallback(callback([&](int64_t value) -> kj::Promise<int64_t> {
      seen.push_back(value);
      return value * 10;
    }));
    request.setTimes(5);
    EXPECT_EQUAL(request.send().wait(scope).getSum(), 100);
    KJ_REQUIRE((seen == std::vector<int64_t>{0, 1, 2, 3, 4}));
  }

  void callBackReentrant() {
    auto request = server.callBackRequest();
    request.setCallback(callback([&](int64_t value) { return echo(server, value + 1); }));
    request.setTimes(5);
    EXPECT_EQUAL(request.send().wait(scope).getSum(), 15);
  }

  void callBackFails() {
    auto request = server.callBackRequest();
    request.setCallback(callback([](int64_t) -> kj::Promise<int64_t> {
      return KJ_EXCEPTION(FAILED, "callback broke");
    }));
    request.setTimes(1);
    expectFailure(request.send().ignoreResult().then([] { return 0; }),
                  kj::Exception::Type::FAILED, "callback broke");
  }

  void forward() {
    auto request = server.forwardRequest();
    request.setCallback(callback([](int64_t value) -> kj::Promise<int64_t> { return value + 1; }));
    request.setValue(41);
    auto promise = request.send();
    auto first = next(promise.getCounter());
    auto response = promise.wait(scope);
    EXPECT_EQUAL(response.getValue(), 42);
    EXPECT_EQUAL(first.wait(scope), 0u);
    EXPECT_EQUAL(next(response.getCounter()).wait(scope), 1u);
  }

  void late() {
    auto counter = server.lateRequest().send().wait(scope).getCounter();
    std::vector<kj::Promise<uint32_t>> calls;
    calls.push_back(next(counter));
    calls.push_back(next(counter));
    resolveLate(Resolution::FRESH).wait(scope);
    calls.push_back(next(counter));
    expectOrder(calls);
  }

  void lateBroken() {
    auto counter = server.lateRequest().send().wait(scope).getCounter();
    auto call = next(counter);
    resolveLate(Resolution::BROKEN).wait(scope);
    expectFailure(kj::mv(call), kj::Exception::Type::FAILED, "late broke");
    expectFailure(next(counter), kj::Exception::Type::FAILED, "late broke");
  }

  void lateParam() {
    auto paf = kj::newPromiseAndFulfiller<Counter::Client>();
    hold(server, Counter::Client(kj::mv(paf.promise)));
    std::vector<kj::Promise<uint32_t>> calls;
    calls.push_back(callHeld(server));
    calls.push_back(callHeld(server));
    EXPECT_EQUAL(echo(server, 1).wait(scope), 1);
    paf.fulfiller->fulfill(own());
    calls.push_back(callHeld(server));
    expectOrder(calls);
  }

  void lateParamDrop() {
    auto paf = kj::newPromiseAndFulfiller<Counter::Client>();
    hold(server, Counter::Client(kj::mv(paf.promise)));
    paf.fulfiller->fulfill(own());
    EXPECT_EQUAL(callHeld(server).wait(scope), 0u);
    server.dropRequest().send().wait(scope);
    alive.until(0).wait(scope);
  }

  void lateParamBroken() {
    auto paf = kj::newPromiseAndFulfiller<Counter::Client>();
    hold(server, Counter::Client(kj::mv(paf.promise)));
    auto call = callHeld(server);
    EXPECT_EQUAL(echo(server, 1).wait(scope), 1);
    paf.fulfiller->reject(KJ_EXCEPTION(FAILED, "param broke"));
    expectFailure(kj::mv(call), kj::Exception::Type::FAILED, "param broke");
  }

  void embargoAnswer() {
    auto request = server.echoCounterRequest();
    request.setCounter(own());
    auto promise = request.send();
    auto early = promise.getCounter();
    std::vector<kj::Promise<uint32_t>> calls;
    calls.push_back(next(early));
    calls.push_back(next(early));
    auto response = promise.wait(scope);
    calls.push_back(next(early));  // early is now our own object, but two calls are on their way
    calls.push_back(next(early));
    expectOrder(calls);
    EXPECT_EQUAL(next(response.getCounter()).wait(scope), 4u);
  }

  void embargoResolve() {
    hold(server, own());
    auto counter = server.lateRequest().send().wait(scope).getCounter();
    std::vector<kj::Promise<uint32_t>> calls;
    calls.push_back(next(counter));
    calls.push_back(next(counter));
    auto resolved = resolveLate(Resolution::HELD);
    calls.push_back(next(counter));
    resolved.wait(scope);
    calls.push_back(next(counter));
    calls.push_back(next(counter));
    expectOrder(calls);
    server.dropRequest().send().wait(scope);
  }

  void cancel() {
    {
      auto call = server.blockRequest().send();
      waitBlocked(server, 1);
    }
    waitBlocked(server, 0);
    EXPECT_EQUAL(echo(server, 1).wait(scope), 1);
  }

  // Connection two holds what connection one is given, and calls it: the server forwards.
  void relay() {
    Connection other(io, options);
    auto second = other.bootstrap();
    hold(second, own());
    EXPECT_EQUAL(callHeld(server).wait(scope), 0u);
    auto through = server.heldRequest().send().wait(scope).getCounter();
    std::vector<kj::Promise<uint32_t>> calls;
    calls.push_back(callHeld(second));
    EXPECT_EQUAL(calls[0].wait(scope), 1u);
    EXPECT_EQUAL(next(through).wait(scope), 2u);
    // And the other way round: this process forwards from one connection to the other.
    hold(second, getNamed("relayed").wait(scope).getNamed());
    EXPECT_EQUAL(callHeld(server).wait(scope), 0u);
    server.dropRequest().send().wait(scope);
  }

  void clientGone() {
    {
      Connection other(io, options);
      auto call = other.bootstrap().blockRequest().send();
      waitBlocked(server, 1);
      call.ignoreResult().eagerlyEvaluate([](kj::Exception&&) {}).detach([](kj::Exception&&) {});
    }
    waitBlocked(server, 0);
  }

  void stream() {
    auto sink = server.openSinkRequest().send().wait(scope).getSink();
    auto block = kj::heapArray<kj::byte>(4096);
    for (uint32_t i = 0; i < 500; i++) {
      auto request = sink.writeRequest();
      request.setIndex(i);
      request.setBytes(block);
      request.send().wait(scope);
    }
    auto done = sink.doneRequest().send().wait(scope);
    EXPECT_EQUAL(done.getWrites(), 500u);
    EXPECT_EQUAL(done.getTotal(), 500u * 4096);
    KJ_REQUIRE(done.getInOrder());
  }

  void streamError() {
    auto sink = server.openSinkRequest().send().wait(scope).getSink();
    std::vector<kj::Promise<void>> writes;
    for (uint32_t i = 0; i < 3; i++) {
      auto request = sink.writeRequest();
      request.setIndex(i);
      if (i != 1) request.initBytes(10);
      writes.push_back(request.send());
    }
    expectFailure(sink.doneRequest().send().ignoreResult().then([] { return 0; }),
                  kj::Exception::Type::FAILED, "empty block");
  }

  kj::Promise<uint64_t> measure(uint64_t bytes) {
    auto request = server.measureRequest();
    request.initValue(bytes);
    return request.send().then([](auto response) -> uint64_t { return response.getBytes(); });
  }

  void sizeLimit() {
    uint64_t under = (options.limitWords - 256) * 8;
    EXPECT_EQUAL(measure(under).wait(scope), under);
    EXPECT_EQUAL(measure(under).wait(scope), under);
    auto refused = measure((options.limitWords + 256) * 8)
        .then([](uint64_t) { return false; }, [](kj::Exception&&) { return true; })
        .wait(scope);
    KJ_REQUIRE(refused, "a message above the limit was taken");
    Connection other(io, options);
    EXPECT_EQUAL(echo(other.bootstrap(), 1).wait(scope), 1);
  }

  void bigResult() {
    auto request = server.bigRequest();
    request.setBytes(3000000);
    auto response = request.send().wait(scope);
    auto got = response.getValue();
    EXPECT_EQUAL(got.size(), 3000000u);
    for (size_t i = 0; i < got.size(); i++) KJ_REQUIRE(got[i] == i % 251, "differs", i);
  }

  void quit() {
    auto named = getNamed("gone").wait(scope).getNamed();
    auto blocked = server.blockRequest().send();
    auto pending = next(blocked.getCounter());
    expectFailure(server.quitRequest().send().ignoreResult().then([] { return 0; }),
                  kj::Exception::Type::DISCONNECTED, "");
    expectFailure(kj::mv(pending), kj::Exception::Type::DISCONNECTED, "");
    expectFailure(next(named), kj::Exception::Type::DISCONNECTED, "");
    connection.network.onDisconnect().wait(scope);
  }

private:
  Level alive;  // first in, last out: own objects report to it when they go
  kj::AsyncIoContext& io;
  const Options& options;
  kj::WaitScope& scope;
  Connection connection;
  Peer::Client server;
};

const std::map<std::string, void (Run::*)()> SCENARIOS = {
    {"echo_int", &Run::echoInt},
    {"echo_text", &Run::echoText},
    {"echo_data", &Run::echoData},
    {"burst", &Run::burst},
    {"order", &Run::order},
    {"pipeline", &Run::pipeline},
    {"pipeline_nested", &Run::pipelineNested},
    {"pipeline_failed", &Run::pipelineFailed},
    {"inheritance", &Run::inheritance},
    {"unimplemented", &Run::unimplemented},
    {"exceptions", &Run::exceptions},
    {"pass_own", &Run::passOwn},
    {"hold_drop", &Run::holdDrop},
    {"release", &Run::release},
    {"null_capability", &Run::nullCapability},
    {"callback", &Run::callBack},
    {"callback_reentrant", &Run::callBackReentrant},
    {"callback_fails", &Run::callBackFails},
    {"forward", &Run::forward},
    {"late", &Run::late},
    {"late_broken", &Run::lateBroken},
    {"late_param", &Run::lateParam},
    {"late_param_drop", &Run::lateParamDrop},
    {"late_param_broken", &Run::lateParamBroken},
    {"embargo_answer", &Run::embargoAnswer},
    {"embargo_resolve", &Run::embargoResolve},
    {"cancel", &Run::cancel},
    {"relay", &Run::relay},
    {"client_gone", &Run::clientGone},
    {"stream", &Run::stream},
    {"stream_error", &Run::streamError},
    {"size_limit", &Run::sizeLimit},
    {"big_result", &Run::bigResult},
    {"quit", &Run::quit},
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    char buffer[8];
    if (c == '"' || c == '\\' || c < 0x20) {
      snprintf(buffer, sizeof(buffer), "\\u%04x", c);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void report(const std::string& name, const std::string& failure) {
  printf("{\"name\": %s, \"ok\": %s, \"detail\": %s}\n", quoted(name).c_str(),
         failure.empty() ? "true" : "false", quoted(failure).c_str());
  fflush(stdout);
}

int run(Options options) {
  auto io = kj::setupAsyncIo();
  for (auto& name : options.names) {
    std::string failure;
    try {
      auto scenario = SCENARIOS.find(name);
      KJ_REQUIRE(scenario != SCENARIOS.end(), "no such scenario");
      Run run(io, options);
      (run.*scenario->second)();
    } catch (kj::Exception& exception) {
      failure = exception.getDescription().cStr();
      if (failure.empty()) failure = "exception without a text";
    }
    report(name, failure);
  }
  return 0;
}

}  // namespace peer

int main(int argc, char** argv) { return peer::run(peer::parseOptions(argc, argv)); }
