// What the C++ server and client share: addresses, objects that count, conditions to wait for.
// Compiles against Cap'n Proto 0.9.2 (C++17) and 1.3 (C++20).

#pragma once

#include <capnp/message.h>
#include <capnp/rpc-twoparty.h>
#include <capnp/rpc.h>
#include <kj/async-io.h>
#include <kj/debug.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "peer.capnp.h"

namespace peer {

struct Options {
  std::string address;           // tcp://host:port or unix:/path
  uint64_t limitWords = 8 << 20; // the server's receive limit
  std::vector<std::string> names;
};

inline Options parseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i++) {
    std::string word = argv[i];
    if (word == "--limit-words" && i + 1 < argc) {
      options.limitWords = strtoull(argv[++i], nullptr, 10);
    } else if (options.address.empty()) {
      options.address = word;
    } else {
      options.names.push_back(word);
    }
  }
  KJ_REQUIRE(!options.address.empty(), "usage: server|client [--limit-words N] address [scenario…]");
  return options;
}

inline kj::Own<kj::NetworkAddress> parseAddress(kj::AsyncIoContext& io, std::string address) {
  if (address.rfind("tcp://", 0) == 0) address = address.substr(6);
  return io.provider->getNetwork().parseAddress(address.c_str()).wait(io.waitScope);
}

// A number to wait for: `until(n)` resolves once the value is n.
class Level {
public:
  void add(int difference) {
    value += difference;
    for (auto at = waiting.begin(); at != waiting.end();) {
      if (at->wanted == value) {
        at->fulfiller->fulfill();
        at = waiting.erase(at);
      } else {
        ++at;
      }
    }
  }

  kj::Promise<void> until(uint32_t wanted) {
    if (value == wanted) return kj::READY_NOW;
    auto paf = kj::newPromiseAndFulfiller<void>();
    waiting.push_back({wanted, kj::mv(paf.fulfiller)});
    return kj::mv(paf.promise);
  }

  uint32_t value = 0;

private:
  struct Waiting {
    uint32_t wanted;
    kj::Own<kj::PromiseFulfiller<void>> fulfiller;
  };
  std::list<Waiting> waiting;
};

class Counting final : public Named::Server {
public:
  Counting(Level& alive, std::string name = "") : alive(alive), text(name) { alive.add(1); }
  ~Counting() noexcept(false) { alive.add(-1); }

  kj::Promise<void> next(NextContext context) override {
    context.getResults().setValue(count++);
    return kj::READY_NOW;
  }
  kj::Promise<void> name(NameContext context) override {
    context.getResults().setName(text.c_str());
    return kj::READY_NOW;
  }

private:
  Level& alive;
  std::string text;
  uint32_t count = 0;
};

}  // namespace peer
