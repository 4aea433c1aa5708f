#include "agent/output/metric_matcher.hpp"

#include <re2/re2.h>
#include <re2/set.h>

#include <cmath>
#include <optional>

#include "base/text.hpp"

namespace trainyard::agent {
namespace {

// Memory of one regex during a search: RE2's own default; beyond it a search fails instead of
// growing.
constexpr int64_t kRegexMemoryBytesMax = 8 << 20;

RE2::Options options() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kRegexMemoryBytesMax);
  return options;
}

std::string with_tabs_escaped(const std::string& line) {
  std::string escaped;
  for (const char character : line) {
    if (character == '\t') {
      escaped += "#011";
    } else {
      escaped += character;
    }
  }
  return escaped;
}

// The definitions for one form of the line. The set finds in one pass which of them match at all:
// most lines match none.
class Group {
 public:
  Group() : set_(options(), RE2::UNANCHORED) {}

  Result<void> add(const domain::MetricDefinition& definition) {
    std::string error;
    if (set_.Add(definition.regex, &error) < 0) {
      return invalid("metric " + definition.name + ": regex '" + shorten(definition.regex, 100) +
                     "': " + error);
    }
    members_.push_back({definition.name, std::make_unique<RE2>(definition.regex, options())});
    return {};
  }
  void compile() { set_compiled_ = !members_.empty() && set_.Compile(); }
  bool empty() const { return members_.empty(); }

  void match(const std::string& line, Instant at, std::vector<wire::MetricPoint>& points) const {
    std::vector<int> found;
    RE2::Set::ErrorInfo problem{RE2::Set::kNoError};
    const bool any = set_compiled_ && set_.Match(line, &found, &problem);
    if (any || (set_compiled_ && problem.kind == RE2::Set::kNoError)) {
      for (const int index : found) search(members_[static_cast<size_t>(index)], line, at, points);
    } else {  // the set ran out of memory: one by one
      for (const auto& member : members_) search(member, line, at, points);
    }
  }

 private:
  struct Member {
    std::string name;
    std::unique_ptr<RE2> regex;
  };

  static void search(const Member& member, const std::string& line, Instant at,
                     std::vector<wire::MetricPoint>& points) {
    re2::StringPiece groups[2];
    const int count = member.regex->NumberOfCapturingGroups() > 0 ? 2 : 1;
    if (!member.regex->Match(line, 0, line.size(), RE2::UNANCHORED, groups, count)) return;
    const auto& text = groups[count - 1];
    const auto value = parse_double(trim(std::string_view(text.data(), text.size())));
    if (value && std::isfinite(*value)) points.push_back({member.name, at, *value, false});
  }

  RE2::Set set_;
  bool set_compiled_ = false;
  std::vector<Member> members_;
};

class Matcher final : public MetricMatcher {
 public:
  Result<void> add(const std::vector<domain::MetricDefinition>& definitions) {
    for (const auto& definition : definitions) {
      const bool escaped = definition.regex.find("#011") != std::string::npos;
      TRY((escaped ? escaped_ : plain_).add(definition));
    }
    plain_.compile();
    escaped_.compile();
    return {};
  }

  void match(const std::string& line, Instant at,
             std::vector<wire::MetricPoint>& points) const override {
    if (!plain_.empty()) plain_.match(line, at, points);
    if (!escaped_.empty()) escaped_.match(with_tabs_escaped(line), at, points);
  }

 private:
  Group plain_, escaped_;
};

}  // namespace

Result<std::unique_ptr<MetricMatcher>> make_metric_matcher(
    const std::vector<domain::MetricDefinition>& definitions) {
  auto matcher = std::make_unique<Matcher>();
  TRY(matcher->add(definitions));
  return std::unique_ptr<MetricMatcher>(std::move(matcher));
}

}  // namespace trainyard::agent
