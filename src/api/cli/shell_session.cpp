#include "cli/shell_session.hpp"

#include <algorithm>
#include <utility>

namespace trainyard::cli {

void ShellSession::type(std::string_view keys) {
  for (const char key : keys) {
    if (left_) return;
    if (escapes_ && tilde_) {
      tilde_ = false;
      if (key == '.') {
        left_ = true;
        return;
      }
      if (key != '~') input_ += '~';
      input_ += key;
      at_line_start_ = key == '\r' || key == '\n';
    } else if (escapes_ && at_line_start_ && key == '~') {
      tilde_ = true;
    } else {
      input_ += key;
      at_line_start_ = key == '\r' || key == '\n';
    }
  }
}

void ShellSession::resize(uint32_t columns, uint32_t rows) {
  if (columns == 0 || rows == 0) return;
  out_ += wire::encode_shell(wire::ShellResize{std::min(columns, wire::kShellSideMax),
                                               std::min(rows, wire::kShellSideMax)});
}

Result<std::string> ShellSession::receive(std::string_view bytes) {
  decoder_.feed(bytes);
  std::string shown;
  for (;;) {
    const auto frame = TRY(decoder_.next());
    if (!frame) break;
    if (const auto* output = std::get_if<wire::ShellOutput>(&*frame)) {
      shown += output->bytes;
      if (!output->bytes.empty())
        out_ += wire::encode_shell(wire::ShellCredit{uint32_t(output->bytes.size())});
    } else if (const auto* credit = std::get_if<wire::ShellCredit>(&*frame)) {
      window_ = std::min(wire::kShellWindowBytes, window_ + credit->bytes);
    } else if (const auto* ended = std::get_if<wire::ShellEnded>(&*frame)) {
      ended_ = *ended;
    } else {
      return corrupt("unexpected frame from the server: of the client's direction");
    }
  }
  return shown;
}

std::string ShellSession::send() {
  while (!input_.empty() && window_ > 0) {
    const size_t bytes = std::min<size_t>({input_.size(), window_, wire::kShellBytesMax});
    out_ += wire::encode_shell(wire::ShellInput{input_.substr(0, bytes)});
    input_.erase(0, bytes);
    window_ -= uint32_t(bytes);
  }
  if (input_ended_ && input_.empty() && !end_sent_) {
    end_sent_ = true;
    out_ += wire::encode_shell(wire::ShellInputEnds{});
  }
  return std::exchange(out_, std::string());
}

}  // namespace trainyard::cli
