#include "cli/views/region_view.hpp"

#include <algorithm>
#include <string_view>

#include "base/text.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {
namespace {

constexpr size_t kRegionNameBytesMax = 64;  // the longest of AWS has 14

// The name becomes part of a signature and of a header.
bool is_region_name(std::string_view text) {
  return !text.empty() && text.size() <= kRegionNameBytesMax &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

const Json& list_in(const Json& answer, const char* name) {
  static const Json kEmpty = Json::array();
  const auto found = answer.is_object() ? answer.find(name) : answer.end();
  return found != answer.end() && found->is_array() ? *found : kEmpty;
}

double created(const Json& job) { return double_or(job, "CreationTime"); }

struct MergedJob {
  const std::string* region;
  const Json* job;
};

}  // namespace

Result<std::vector<std::string>> region_names(const Json& answer) {
  const Json& listed = list_in(answer, "regionInfo");
  if (listed.size() > kRegionsMax)
    return exhausted("the server lists " + std::to_string(listed.size()) +
                     " regions, and one list has at most " + std::to_string(kRegionsMax) +
                     "; use --region for one after another");
  std::vector<std::string> names;
  for (const Json& region : listed) {
    std::string name = TRY(string_at(region, "regionName").in("an item of regionInfo"));
    if (!is_region_name(name))
      return invalid("the server lists a region with an invalid name: '" + shorten(name, 80) + "'");
    names.push_back(std::move(name));
  }
  if (names.empty()) return invalid("the server lists no regions");
  return names;
}

Json merge_regions(const std::vector<RegionJobs>& regions, size_t jobs_max) {
  std::vector<MergedJob> merged;
  Json missing = Json::array();
  for (const auto& [region, answer] : regions) {
    if (!answer) {
      missing.push_back({{"Region", region}, {"Message", answer.error().message}});
      continue;
    }
    for (const Json& job : list_in(*answer, "Jobs"))
      if (job.is_object()) merged.push_back({&region, &job});
  }
  std::stable_sort(merged.begin(), merged.end(), [](const MergedJob& a, const MergedJob& b) {
    return created(*a.job) > created(*b.job);
  });
  Json jobs = Json::array();
  for (size_t i = 0; i < std::min(jobs_max, merged.size()); ++i) {
    jobs.push_back(*merged[i].job);
    jobs.back()["Region"] = *merged[i].region;
  }
  return Json{{"Jobs", std::move(jobs)}, {"MissingRegions", std::move(missing)}};
}

std::string missing_regions_text(const std::vector<RegionJobs>& regions) {
  std::string text;
  for (const auto& [region, answer] : regions) {
    if (!answer)
      text += "the jobs of region " + region +
              " are missing: " + plain_text(answer.error().message) + "\n";
  }
  return text;
}

}  // namespace trainyard::cli
