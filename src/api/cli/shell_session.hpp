// ShellSession is the client's side of a shell: it encodes keys and window sizes as frames, and decodes
// frames to terminal output. Pure; the loop around it is in commands/shell.cpp.
//
// Threads: confined to one. Errors: corrupt, when the server sends an invalid frame.
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

  // Adds typed keys, which wait here until the window allows sending them.
  void type(std::string_view keys);
  void input_ends() { input_ended_ = true; }
  void resize(uint32_t columns, uint32_t rows);
  // Takes bytes of the server; returns output for the terminal.
  Result<std::string> receive(std::string_view bytes);
  // Returns bytes for the server.
  std::string send();

  // True if more keys can be taken now.
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
