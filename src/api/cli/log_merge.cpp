#include "cli/log_merge.hpp"

#include "base/text.hpp"

namespace trainyard::cli {

void LogMerge::mark_unread(const std::string& stream) { sources_[stream].at_end = false; }

void LogMerge::feed(const std::string& stream, std::vector<LogLine> lines, bool at_end) {
  Source& source = sources_[stream];
  for (auto& line : lines) source.lines.push_back(std::move(line));
  source.at_end = at_end;
}

std::vector<std::string> LogMerge::unread_streams() const {
  std::vector<std::string> names;
  for (const auto& [name, source] : sources_)
    if (source.lines.empty() && !source.at_end) names.push_back(name);
  return names;
}

std::vector<LogLine> LogMerge::take_ready() {
  std::vector<LogLine> taken;
  for (;;) {
    Source* first = nullptr;
    for (auto& [name, source] : sources_) {
      if (source.lines.empty()) {
        if (!source.at_end) return taken;
        continue;
      }
      if (!first || source.lines.front().at_milliseconds < first->lines.front().at_milliseconds)
        first = &source;
    }
    if (!first) return taken;
    taken.push_back(std::move(first->lines.front()));
    first->lines.pop_front();
  }
}

std::string host_of_stream(const std::string& stream) {
  const size_t slash = stream.rfind('/');
  const std::string name = stream.substr(slash == std::string::npos ? 0 : slash + 1);
  if (!name.starts_with("algo-")) return name;
  return name.substr(0, name.find('-', 5));
}

std::string log_line(const OutputStyle& style, const LogLine& line, int widest) {
  // Hosts are counted from 1, children and nodes from 0.
  const size_t mark = line.host.starts_with("algo-") ? 4 : line.host.find_last_of(":#");
  const auto number =
      parse_int(mark == std::string::npos ? "" : std::string_view(line.host).substr(mark + 1));
  const int64_t from_zero = number ? *number - (line.host[mark] == '-') : 0;
  const uint32_t colour = from_zero > 0 ? uint32_t(from_zero) : 0;
  return paint_by_number(style, colour,
                         pad(style, line.host, widest) + (style.unicode ? " │" : " |")) +
         " " + harmless(style, line.text) + "\n";
}

}  // namespace trainyard::cli
