// Compares what the hosts of a job have read, before they train.
//
// Threads: pure functions. Errors: invalid, naming a host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "boosting/rows/table.hpp"

namespace trainyard::boosting {

// A ChannelShare describes what one host has of a channel.
struct ChannelShare {
  uint64_t rows = 0;
  uint64_t columns = 0;
  bool is_sparse = false;
  bool has_groups = false;
};
ChannelShare share_of(const Table& table);

struct HostShare {
  ChannelShare train;
  bool stopped = false;  // `stop` was set before all was read
  bool has_validation = false;
  ChannelShare validation;
};
std::string encode(const HostShare& share);
Result<HostShare> decode_share(const std::string& text);

struct Agreement {
  bool stopped = false;  // `stop` was set on a host: the other members are unset
  uint64_t columns = 0;  // the largest number of a host
  uint64_t rows = 0;     // rows of the channel `train` on all hosts
};
// Compares the shares of all hosts. `shares` and `hosts` (names) are by rank.
Result<Agreement> agree(const std::vector<HostShare>& shares,
                        const std::vector<std::string>& hosts);

}  // namespace trainyard::boosting
