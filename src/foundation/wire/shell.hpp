// Encodes the frames on the upgraded connection of a shell, between the user's client, the server
// and the agent. Grammar, sizes and golden bytes: docs/formats/shell.md.
//
// Either side may have kShellWindowBytes in transit that the other has not returned with a Credit;
// so a shell that prints without end uses no more memory than that at each of the three, and a slow
// reader slows the program.
//
// Threads: plain values, pure functions. Errors: corrupt, naming frame and field. Input is hostile
// until decoded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.hpp"

namespace trainyard::wire {

// of one frame's payload: kind and body
inline constexpr size_t kShellFrameBytesMax = 64 << 10;
inline constexpr size_t kShellBytesMax = kShellFrameBytesMax - 16;  // of the bytes in one frame
inline constexpr uint32_t kShellWindowBytes =
    256 << 10;  // a screen has some kilobytes; a file arrives at full speed
inline constexpr uint32_t kShellSideMax = 10'000;  // columns or rows of a terminal

// -- from the client
struct ShellInput {
  std::string bytes;
};
struct ShellInputEnds {};  // for commands without a terminal: end of standard input
struct ShellResize {
  uint32_t columns = 80, rows = 24;
};

// -- from the host
struct ShellOutput {
  std::string bytes;
};
struct ShellEnded {  // the last frame
  int exit_code = 0;
  std::string reason;  // "" when it ended by itself
};

// -- from both: the number of the peer's bytes that were consumed
struct ShellCredit {
  uint32_t bytes = 0;
};

using ShellFrame =
    std::variant<ShellInput, ShellInputEnds, ShellResize, ShellOutput, ShellEnded, ShellCredit>;

// Return a frame's payload, and the whole frame with its length.
std::string encode_shell_payload(const ShellFrame& frame);
std::string encode_shell(const ShellFrame& frame);
Result<ShellFrame> decode_shell_payload(std::string_view payload);

// Splits bytes that arrive in pieces into frames. Holds at most one frame.
class ShellDecoder {
 public:
  void feed(std::string_view bytes) { buffer_ += bytes; }
  // Returns nothing while the next frame is incomplete.
  Result<std::optional<ShellFrame>> next();

 private:
  std::string buffer_;
};

}  // namespace trainyard::wire
