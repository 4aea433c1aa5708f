// Encodes and decodes the messages between an agent and the init of a reused container. The init is
// entry, which runs as the first process of the container and starts one child after another. Each
// packet is a JSON object; grammar: docs/formats/container-init.md.
//
// Reports of the init come from a container, and are hostile until decoded.
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

// The option of entry that makes it run as a container init.
inline constexpr std::string_view kContainerInitOption = "--keep";

// -- orders of the agent -------------------------------------------------------------------------

// Starts a child. Sent with a descriptor for the child's output. Answered by Started or NotStarted,
// and later by Ended.
struct RunChild {
  std::vector<std::string> arguments;  // arguments[0] is searched on PATH of `environment`
  std::map<std::string, std::string> environment;
  std::string working_directory;
};
// Sends a signal to the child or, with `all`, to all processes of the container except the init.
struct SignalChild {
  int number = 15;
  bool all = false;
};
// Ends the child and all processes that it left, and empties /tmp and /dev/shm. Answered by
// Cleared.
struct Clear {};
using InitOrder = std::variant<RunChild, SignalChild, Clear>;

// -- reports of the init -------------------------------------------------------------------------

struct Started {};
struct NotStarted {
  std::string reason;
};
struct Ended {
  int code = 0;  // exit code; 128+n: ended by signal n
};
struct Cleared {};
using InitReport = std::variant<Started, NotStarted, Ended, Cleared>;

inline constexpr size_t kInitReasonBytesMax = 1000;
inline constexpr int kSignalMax = 64;  // the last signal of Linux

std::string encode(const InitOrder& order);
std::string encode(const InitReport& answer);
Result<InitOrder> decode_init_order(std::string_view bytes);
Result<InitReport> decode_init_report(std::string_view bytes);

}  // namespace trainyard::contract
