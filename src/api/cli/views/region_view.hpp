// Reads the regions that a server lists, and merges their jobs into one list.
//
// Threads: pure functions. Errors: invalid, for names that are not those of regions; exhausted, for
// more than kRegionsMax regions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::cli {

// The number of regions of one list. AWS has fewer than 40. Each region takes one connection and
// one thread while it is queried.
inline constexpr size_t kRegionsMax = 64;

// Returns the names of the regions in an answer of EC2's DescribeRegions, in its order.
Result<std::vector<std::string>> region_names(const Json& answer);

// RegionJobs is the answer of a region to ListJobs, or the reason why its jobs are missing.
struct RegionJobs {
  std::string region;
  Result<Json> answer;  // {"Jobs": [..]}, the newest job first
};

// Returns {"Jobs": [..], "MissingRegions": [..]}: the newest `jobs_max` jobs of all regions, each
// with its Region, and the regions without an answer, each with a Message. Jobs that were created
// at the same time stay in the order of the regions.
Json merge_regions(const std::vector<RegionJobs>& regions, size_t jobs_max);

// Formats a line for each region without an answer; "" if all have answered.
std::string missing_regions_text(const std::vector<RegionJobs>& regions);

}  // namespace trainyard::cli
