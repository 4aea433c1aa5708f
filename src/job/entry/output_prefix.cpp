#include "entry/output_prefix.hpp"

#include "base/text.hpp"

namespace trainyard::entry {

std::string prefix_for_log(std::string_view line, const std::vector<std::string>& hosts,
                           int ranks_of_host) {
  const std::string as_it_is(line);
  if (!line.starts_with('[')) return as_it_is;
  const size_t comma = line.find(','), end = line.find(']');
  if (comma == std::string_view::npos || end == std::string_view::npos || comma > end || end > 32)
    return as_it_is;
  const auto rest = line.substr(end + 1);
  if (!rest.starts_with("<stdout>") && !rest.starts_with("<stderr>")) return as_it_is;
  const auto job = parse_int(line.substr(1, comma - 1));
  const auto rank = parse_int(line.substr(comma + 1, end - comma - 1));
  if (!job || !rank || *rank < 0) return as_it_is;
  std::string tagged = "[" + std::to_string(*job) + ",mpirank:" + std::to_string(*rank);
  const auto place =
      static_cast<size_t>(*rank) / static_cast<size_t>(ranks_of_host > 0 ? ranks_of_host : 1);
  if (place < hosts.size()) tagged += "," + hosts[place];
  return tagged + "]" + std::string(rest);
}

}  // namespace trainyard::entry
