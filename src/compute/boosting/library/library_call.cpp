#include "boosting/library/library_call.hpp"

#include <xgboost/c_api.h>

#include <cctype>

#include "base/text.hpp"

namespace trainyard::boosting {
namespace {

constexpr size_t kMessageShown = 400;

// Returns the text after "PATH:LINE: ", or the whole text if it does not start so.
std::string_view after_source_line(std::string_view text) {
  const size_t blank = text.find(": ");
  const size_t colon = blank == std::string_view::npos ? blank : text.rfind(':', blank - 1);
  if (blank == 0 || colon == std::string_view::npos || colon + 1 >= blank) return text;
  for (size_t i = colon + 1; i < blank; ++i)
    if (!std::isdigit(static_cast<unsigned char>(text[i]))) return text;
  return text.substr(blank + 2);
}

}  // namespace

std::string plain_library_message(std::string_view message) {
  if (message.starts_with('[')) {
    const size_t end = message.find("] ");
    if (end != std::string_view::npos) message.remove_prefix(end + 2);
  }
  message = after_source_line(message);
  const size_t trace = message.find("\nStack trace");
  message = trim(message.substr(0, trace));
  std::string line;
  for (const char each : message) line += each == '\n' ? ' ' : each;
  return shorten(line, kMessageShown);
}

Result<void> library_result(int code) {
  if (code == 0) return ok();
  return invalid(plain_library_message(XGBGetLastError()), LibraryFault::call);
}

}  // namespace trainyard::boosting
