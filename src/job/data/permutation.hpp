// Shuffles a channel's items for an epoch, and selects a host's share.
//
// The same seed and epoch give the same order on every host. So the shares of a sharded channel
// come from one shuffled list, and over the epochs every host gets every item.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace trainyard::data {

// Returns the numbers of the items, 0 .. items - 1, in the order of the epoch. Without a seed they
// keep the listed order.
std::vector<uint32_t> permutation_of(uint32_t items, std::optional<int64_t> seed, uint64_t epoch);

// Returns the share of one host: every `hosts`-th item, beginning with item `host`.
// Requires: host < hosts.
std::vector<uint32_t> share_of(const std::vector<uint32_t>& order, uint32_t host, uint32_t hosts);

}  // namespace trainyard::data
