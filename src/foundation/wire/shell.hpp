// Encodes the frames on the upgraded connection of a shell, between the user's client, the server
// and the agent. Grammar, sizes and golden bytes: docs/formats/shell.md.
//
// Either side may have kShellWindowBytes in transit for which the other has not yet sent a Credit.
// A shell that prints without end therefore uses no more memory than that in each of the three
// programs, and a slow reader slows the shell.
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

// limit of one frame's payload: kind and body
inline constexpr size_t kShellFrameBytesMax = 64 << 10;
// limit of the input or output in one frame
inline constexpr size_t kShellBytesMax = kShellFrameBytesMax - 16;
// a screen has some kilobytes; large enough to transfer a file at full speed
inline constexpr uint32_t kShellWindowBytes = 256 << 10;
inline constexpr uint32_t kShellSideMax = 10'000;  // columns or rows of a terminal

// -- frames from the client ---------------------------------------------------------------------
struct ShellInput {
  std::string bytes;
};
struct ShellInputEnds {};  // for commands without a terminal: end of standard input
struct ShellResize {
  uint32_t columns = 80, rows = 24;
};

// -- frames from the host -----------------------------------------------------------------------
struct ShellOutput {
  std::string bytes;
};
struct ShellEnded {  // the last frame
  int exit_code = 0;
  std::string reason;  // "": the program ended by itself
};

// -- frames from both sides ---------------------------------------------------------------------
struct ShellCredit {
  uint32_t bytes = 0;  // number of the peer's bytes that were consumed
};

using ShellFrame =
    std::variant<ShellInput, ShellInputEnds, ShellResize, ShellOutput, ShellEnded, ShellCredit>;

// Returns a frame's payload, without its length.
std::string encode_shell_payload(const ShellFrame& frame);
// Returns the whole frame, with its length.
std::string encode_shell(const ShellFrame& frame);
Result<ShellFrame> decode_shell_payload(std::string_view payload);

// Splits bytes that arrive in pieces into frames. Holds at most one frame.
class ShellDecoder {
 public:
  void feed(std::string_view bytes) { buffer_ += bytes; }
  // Returns nullopt while the next frame is incomplete.
  Result<std::optional<ShellFrame>> next();

 private:
  std::string buffer_;
};

}  // namespace trainyard::wire
