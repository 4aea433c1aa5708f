// Encodes the messages between an agent and the init of a reused container: entry, as its first
// process, runs one child after another. Each packet is a JSON object; grammar:
// docs/formats/container-init.md.
//
// Reports of the init are sent by a container and are hostile until decoded.
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

// The option with which entry runs as a container init.
inline constexpr std::string_view kContainerInitOption = "--keep";

// -- down

// Sent with a descriptor for the child's output. Answered by Started or NotStarted, and later by
// Ended.
struct RunChild {
  std::vector<std::string> arguments;  // arguments[0] is found on PATH of `environment`
  std::map<std::string, std::string> environment;
  std::string working_directory;
};
// Sent to the child, or to all processes of the container but the init.
struct SignalChild {
  int number = 15;
  bool all = false;
};
// Ends all that is left of the child and empties /tmp and /dev/shm; answered by Cleared. Requires:
// the child has ended, or this ends it.
struct Clear {};
using InitOrder = std::variant<RunChild, SignalChild, Clear>;

// -- up

struct Started {};
struct NotStarted {
  std::string reason;
};
struct Ended {
  int code = 0;  // 128+n when ended by signal n
};
struct Cleared {};
using InitReport = std::variant<Started, NotStarted, Ended, Cleared>;

inline constexpr size_t kInitReasonBytesMax = 1000;
inline constexpr int kSignalMax = 64;  // Linux's last one

std::string encode(const InitOrder& order);
std::string encode(const InitReport& answer);
Result<InitOrder> decode_init_order(std::string_view bytes);
Result<InitReport> decode_init_report(std::string_view bytes);

}  // namespace trainyard::contract
