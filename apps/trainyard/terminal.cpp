#include "trainyard/terminal.hpp"

#include <unistd.h>

#include <cstdlib>

namespace trainyard::apps {

std::string paint(Paint paint, const std::string& text) {
  static const bool colours = ::isatty(STDOUT_FILENO) == 1 && !std::getenv("NO_COLOR");
  if (!colours) return text;
  const char* code = "0";
  switch (paint) {
    case Paint::bold:
      code = "1";
      break;
    case Paint::dim:
      code = "2";
      break;
    case Paint::green:
      code = "32";
      break;
    case Paint::yellow:
      code = "33";
      break;
    case Paint::red:
      code = "31";
      break;
  }
  return std::string("\033[") + code + "m" + text + "\033[0m";
}

}  // namespace trainyard::apps
