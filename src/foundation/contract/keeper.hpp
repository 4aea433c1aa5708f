// What an agent and the keeper of a container say to each other: entry, as the first process of a container that is
// kept, runs one child after another in it. Each packet is a JSON object; grammar: docs/formats/container-init.md.
//
// What the keeper says comes out of a container and is hostile until it was decoded.
//
// Threads: pure functions. Errors: invalid, corrupt.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace trainyard::contract {

// With what entry is called as a keeper.
inline constexpr std::string_view kKeepOption = "--keep";

// -- down

// With a descriptor: what the child's output goes to. Answered by Started or NotStarted, and later by Ended.
struct RunChild {
  std::vector<std::string> arguments;  // arguments[0] is found on PATH of `environment`
  std::map<std::string, std::string> environment;
  std::string working_directory;
};
// To the child, or to all that runs in the container but the keeper.
struct SignalChild {
  int number = 15;
  bool all = false;
};
// Ends all that is left of the child and empties /tmp and /dev/shm; answered by Cleared. Requires: the child has ended,
// or is to end by this.
struct Clear {};
using KeeperOrder = std::variant<RunChild, SignalChild, Clear>;

// -- up

struct Started {};
struct NotStarted {
  std::string reason;
};
struct Ended {
  int code = 0;  // 128+n when ended by signal n
};
struct Cleared {};
using KeeperAnswer = std::variant<Started, NotStarted, Ended, Cleared>;

inline constexpr size_t kKeeperReasonBytesMax = 1000;
inline constexpr int kSignalMax = 64;  // Linux's last one

std::string encode(const KeeperOrder& order);
std::string encode(const KeeperAnswer& answer);
Result<KeeperOrder> decode_keeper_order(std::string_view bytes);
Result<KeeperAnswer> decode_keeper_answer(std::string_view bytes);

}  // namespace trainyard::contract
