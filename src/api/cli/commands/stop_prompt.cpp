#include "cli/commands/stop_prompt.hpp"

#include <algorithm>

namespace trainyard::cli {
namespace {

constexpr char kControlC = 3, kControlD = 4, kEscape = 27;

// Returns the bytes of the escape sequence at the front: ESC [ parameters final (CSI), ESC O final
// (SS3), ESC and one more byte, or the key Escape. ECMA-48 defines the ranges.
size_t sequence_bytes(std::string_view typed) {
  if (typed.size() < 2) return typed.size();
  if (typed[1] == 'O') return std::min<size_t>(3, typed.size());
  if (typed[1] != '[') return 2;
  const auto is_final = [](char c) { return c >= '@' && c <= '~'; };
  const auto end = std::ranges::find_if(typed.substr(2), is_final);
  return std::min(typed.size(), size_t(end - typed.begin()) + 1);
}

}  // namespace

std::optional<bool> read_stop_answer(std::string_view typed) {
  while (!typed.empty()) {
    switch (typed[0]) {
      case 's':
      case 'S':
        return true;
      case '\r':
      case '\n':
      case kControlC:
      case kControlD:
        return false;
      default:
        break;
    }
    typed.remove_prefix(typed[0] == kEscape ? sequence_bytes(typed) : 1);
  }
  return {};
}

}  // namespace trainyard::cli
