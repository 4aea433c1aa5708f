#include "reconcile/guarded_text.hpp"

#include "base/text.hpp"

namespace trainyard::reconcile {
namespace {

constexpr char kBegin = '\x01', kEnd = '\x02', kSeparator = '\x1f';

}  // namespace

std::string guard(domain::JobNumber job, std::string_view text, std::string_view hidden) {
  std::string out(1, kBegin);
  out += std::to_string(job);
  out += kSeparator;
  out += text;
  out += kSeparator;
  out += hidden;
  out += kEnd;
  return out;
}

std::string reveal(std::string_view text, const MaySeeNumber& may_see) {
  std::string out;
  while (!text.empty()) {
    const size_t begin = text.find(kBegin);
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const size_t end = text.find(kEnd, begin);
    if (end == std::string_view::npos) break;
    const std::string_view guarded = text.substr(begin + 1, end - begin - 1);
    text.remove_prefix(end + 1);
    const size_t first = guarded.find(kSeparator), last = guarded.rfind(kSeparator);
    const auto job = parse_int(guarded.substr(0, first));
    if (first == last || !job) continue;
    out += may_see(domain::JobNumber(*job)) ? guarded.substr(first + 1, last - first - 1)
                                            : guarded.substr(last + 1);
  }
  return out;
}

std::string reveal_to_all(std::string_view text) {
  return reveal(text, [](domain::JobNumber) { return true; });
}

}  // namespace trainyard::reconcile
