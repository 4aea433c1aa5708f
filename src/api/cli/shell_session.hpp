// ShellSession is the client's side of a shell: it encodes keys and window sizes as frames, and
// decodes frames to terminal output. It does no I/O; commands/shell.cpp has the loop around it.
//
// Threads: confined to one. Errors: corrupt, if the server sends an invalid frame.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "wire/shell.hpp"

namespace trainyard::cli {

class ShellSession {
 public:
  // `escapes`: ~. at the start of a line leaves the shell, and ~~ sends one ~, as in ssh.
  explicit ShellSession(bool escapes) : escapes_(escapes) {}

  // Adds typed keys, which are queued until the window allows sending them.
  void type(std::string_view keys);
  void input_ends() { input_ended_ = true; }
  void resize(uint32_t columns, uint32_t rows);
  // Decodes bytes from the server, and returns output for the terminal.
  Result<std::string> receive(std::string_view bytes);
  // Returns bytes for the server.
  std::string send();

  // Returns whether type() may be called with more keys now.
  bool window_open() const {
    return input_.size() < wire::kShellWindowBytes && !left_ && !input_ended_;
  }
  bool left() const { return left_; }
  const std::optional<wire::ShellEnded>& ended() const { return ended_; }

 private:
  const bool escapes_;
  bool at_line_start_ = true, tilde_ = false, left_ = false;
  bool input_ended_ = false, end_sent_ = false;
  std::string input_, out_;
  uint32_t window_ = wire::kShellWindowBytes;
  wire::ShellDecoder decoder_;
  std::optional<wire::ShellEnded> ended_;
};

}  // namespace trainyard::cli
