#include "domain/array.hpp"

#include <numeric>

#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::domain {

std::optional<ChildName> parse_child_name(std::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view digits = name.substr(colon + 1);
  const auto index = parse_int(digits);
  // Rejects "4b7d:012": each child has one name.
  if (!index || *index < 0 || *index >= kArraySizeMax || std::to_string(*index) != digits)
    return std::nullopt;
  return ChildName{std::string(name.substr(0, colon)), uint32_t(*index)};
}

Job child_of(const Job& array, uint32_t index) {
  CHECK(array.is_array() && index < array.spec.array.size, "only an array has children");
  Job child;
  child.number = child_number(array.number, index);
  child.key = {array.key.region, array.key.name + ":" + std::to_string(index)};
  child.account = array.account;
  child.spec = array.spec;
  child.parent = array.number;
  child.created = child.modified = array.created;
  child.clock_offset = array.clock_offset;
  if (!array.transitions.empty()) {
    child.transitions.push_back(array.transitions.front());
    child.transitions.back().end.reset();
  }
  child.awaits = array.awaits;  // empty when children are made
  if (array.spec.array.sequential && index > 0) child.awaits.push_back(child.number - 1);
  for (const JobNumber other : array.awaits_alike)
    child.awaits.push_back(child_number(other, index));
  if (array.state == JobState::waiting || array.state == JobState::active) return child;
  child.state = JobState::stopped;
  child.stop_requested = array.stop_requested;
  child.stop_cause = array.stop_cause;
  child.stop_grace = array.stop_grace;
  child.cancellation = array.cancellation;
  child.cancellation_reason = array.cancellation_reason;
  child.modified = array.stop_requested.value_or(array.modified);
  return child;
}

uint32_t ChildCounts::all() const { return std::accumulate(of.begin(), of.end(), uint32_t{0}); }

}  // namespace trainyard::domain
