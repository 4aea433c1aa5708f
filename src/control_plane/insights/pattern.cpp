#include "insights/pattern.hpp"

#include <re2/re2.h>

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::insights {
namespace {

// Debian's RE2 knows (?P<name>..) alone.
std::string with_names(std::string_view expression) {
  std::string out;
  for (size_t at = 0; at < expression.size(); ++at) {
    if (expression[at] == '\\' && at + 1 < expression.size()) {
      out += expression[at++];
    } else if (expression.substr(at).starts_with("(?<") && at + 3 < expression.size() &&
               expression[at + 3] != '=' && expression[at + 3] != '!') {
      out += "(?P<";
      at += 2;
      continue;
    }
    out += expression[at];
  }
  return out;
}

// A search for a longer text could compare it at each position of a message.
constexpr size_t kFirstTextMax = 64;  // bytes

// Returns a text that each match begins with; "" if that is not obvious.
std::string_view first_text(std::string_view expression) {
  if (expression.find('|') != std::string_view::npos) return {};
  size_t end = std::min(expression.find_first_of("\\^$.?*+()[{"), expression.size());
  // An operator that accepts no repetition excludes the character before it.
  if (end < expression.size() &&
      std::string_view("?*{").find(expression[end]) != std::string_view::npos) {
    while (end > 0 && (uint8_t(expression[end - 1]) & 0xc0) == 0x80) --end;
    if (end > 0) --end;
  }
  return expression.substr(0, std::min(end, kFirstTextMax));
}

}  // namespace

Pattern::~Pattern() = default;

Result<std::shared_ptr<const Pattern>> Pattern::regex(std::string_view expression) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kPatternMemoryMax);
  auto compiled = std::make_unique<re2::RE2>(with_names(expression), options);
  if (!compiled->ok()) return invalid("invalid regular expression: " + compiled->error());
  if (size_t(compiled->NumberOfCapturingGroups()) > kPatternGroupsMax)
    return invalid("a regular expression may have " + std::to_string(kPatternGroupsMax) +
                   " groups");
  std::shared_ptr<Pattern> pattern(new Pattern);
  pattern->regex_ = std::move(compiled);
  pattern->literal_ = first_text(expression);
  pattern->literal_only_ = !expression.empty() && pattern->literal_ == expression;
  return std::shared_ptr<const Pattern>(std::move(pattern));
}

Result<std::shared_ptr<const Pattern>> Pattern::glob(std::string_view glob) {
  std::string expression = "(?s)";
  for (size_t at = 0; at <= glob.size();) {
    const size_t star = std::min(glob.find('*', at), glob.size());
    expression += re2::RE2::QuoteMeta(re2::StringPiece(glob.data() + at, star - at));
    if (star == glob.size()) break;
    // The last one reaches to the end of the text, others to what follows them.
    expression += star + 1 == glob.size() ? "(.*)" : "(.*?)";
    at = star + 1;
  }
  return regex(expression);
}

std::shared_ptr<const Pattern> Pattern::literal(std::string text) {
  std::shared_ptr<Pattern> pattern(new Pattern);
  pattern->literal_ = std::move(text);
  pattern->literal_only_ = true;
  return pattern;
}

bool Pattern::found_in(std::string_view text) const {
  // A search for the literal takes a tenth of RE2's time.
  if (text.find(literal_) == std::string_view::npos) return false;
  return literal_only_ || regex_->Match(re2::StringPiece(text.data(), text.size()), 0, text.size(),
                                        re2::RE2::UNANCHORED, nullptr, 0);
}

size_t Pattern::groups() const { return regex_ ? size_t(regex_->NumberOfCapturingGroups()) : 0; }

std::vector<std::string> Pattern::names() const {
  std::vector<std::string> names(groups());
  if (regex_)
    for (const auto& [name, group] : regex_->NamedCapturingGroups())
      names[size_t(group) - 1] = name;
  return names;
}

bool Pattern::capture(std::string_view text, std::vector<std::string>& groups) const {
  if (!regex_) return false;
  std::vector<re2::StringPiece> found(this->groups() + 1);
  if (!regex_->Match(re2::StringPiece(text.data(), text.size()), 0, text.size(),
                     re2::RE2::UNANCHORED, found.data(), int(found.size())))
    return false;
  groups.clear();
  for (size_t i = 1; i < found.size(); ++i)
    groups.emplace_back(found[i].data() ? std::string(found[i].data(), found[i].size()) : "");
  return true;
}

std::string Pattern::replaced(const std::string& text, std::string_view by,
                              size_t bytes_max) const {
  std::string out;
  size_t at = 0;
  while (at <= text.size()) {
    size_t begin = std::string::npos, end = 0;
    if (!regex_) {
      begin = literal_.empty() ? std::string::npos : text.find(literal_, at);
      end = begin + literal_.size();
    } else if (re2::StringPiece match;
               regex_->Match(text, at, text.size(), re2::RE2::UNANCHORED, &match, 1) &&
               !match.empty()) {
      begin = size_t(match.data() - text.data());
      end = begin + match.size();
    }
    if (begin == std::string::npos) break;
    out.append(text, at, begin - at).append(by);
    at = end;
    if (out.size() > bytes_max) return text;
  }
  out.append(text, std::min(at, text.size()), std::string::npos);
  return out.size() > bytes_max ? text : out;
}

}  // namespace trainyard::insights
