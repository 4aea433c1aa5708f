// Who types into a shell: keys and sizes as frames, frames as what the terminal shows. Pure; the loop around it is in
// commands/shell.cpp.
//
// Threads: confined to one. Errors: corrupt, what the server sends is no frame of the inside's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "wire/shell.hpp"

namespace trainyard::cli {

class ShellSession {
 public:
  // `escapes`: a line that begins with ~. leaves, as it does in ssh; ~~ is one ~.
  explicit ShellSession(bool escapes) : escapes_(escapes) {}

  // What was typed: waits inside until there is room for it.
  void type(std::string_view keys);
  void input_ends() { input_ended_ = true; }
  void resize(uint32_t columns, uint32_t rows);
  // Bytes of the server; what the terminal is to show.
  Result<std::string> receive(std::string_view bytes);
  // Bytes for the server.
  std::string send();

  // Whether more may be typed now.
  bool has_room() const { return input_.size() < wire::kShellWindowBytes && !left_ && !input_ended_; }
  bool left() const { return left_; }
  const std::optional<wire::ShellEnded>& ended() const { return ended_; }

 private:
  const bool escapes_;
  bool at_line_start_ = true, tilde_ = false, left_ = false;
  bool input_ended_ = false, end_said_ = false;
  std::string input_, out_;
  uint32_t room_ = wire::kShellWindowBytes;
  wire::ShellDecoder decoder_;
  std::optional<wire::ShellEnded> ended_;
};

}  // namespace trainyard::cli
