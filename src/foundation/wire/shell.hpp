// What is said on the upgraded connection of a shell, from end to end: who types, the server between, and the agent.
// Grammar, sizes and golden bytes: docs/formats/shell.md.
//
// Either side may have kShellWindowBytes on the way that the other has not given back with a Credit; so a shell that
// prints without end holds no more than that at any of the three, and a slow reader slows what runs inside.
//
// Threads: plain values, pure functions. Errors: corrupt, naming frame and field. What arrives is hostile until
// decoded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.hpp"

namespace trainyard::wire {

inline constexpr size_t kShellFrameBytesMax = 64 << 10;             // of one frame's payload: kind and body
inline constexpr size_t kShellBytesMax = kShellFrameBytesMax - 16;  // of the bytes that one frame carries
inline constexpr uint32_t kShellWindowBytes =
    256 << 10;                                     // a screen has some kilobytes; a file comes at full speed
inline constexpr uint32_t kShellSideMax = 10'000;  // columns or rows of a terminal

// -- from who types
struct ShellInput {
  std::string bytes;
};
struct ShellInputEnds {};  // of commands without a terminal: their standard input is at its end
struct ShellResize {
  uint32_t columns = 80, rows = 24;
};

// -- from inside
struct ShellOutput {
  std::string bytes;
};
struct ShellEnded {  // the last frame
  int exit_code = 0;
  std::string reason;  // "" when it ended by itself
};

// -- from both: so many bytes of yours are used up
struct ShellCredit {
  uint32_t bytes = 0;
};

using ShellFrame =
    std::variant<ShellInput, ShellInputEnds, ShellResize, ShellOutput, ShellEnded, ShellCredit>;

// A frame's payload, and the whole frame with its length before it.
std::string encode_shell_payload(const ShellFrame& frame);
std::string encode_shell(const ShellFrame& frame);
Result<ShellFrame> decode_shell_payload(std::string_view payload);

// Frames out of bytes that come in any pieces. Holds at most one frame.
class ShellDecoder {
 public:
  void feed(std::string_view bytes) { buffer_ += bytes; }
  // Nothing, while the next frame is not whole.
  Result<std::optional<ShellFrame>> next();

 private:
  std::string buffer_;
};

}  // namespace trainyard::wire
