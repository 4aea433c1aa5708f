// Orders a channel's items for an epoch, and selects this host's share.
//
// The same seed and epoch give the same order on every host, so that a sharded channel is
// distributed from one shuffled list: over the epochs every host gets every item.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace trainyard::data {

// Items are numbered from 0. Without a seed they keep their order.
std::vector<uint32_t> order_of(uint32_t items, std::optional<int64_t> seed, uint64_t epoch);

// Gives host k of n every n-th item.
// Requires: host < hosts.
std::vector<uint32_t> share_of(const std::vector<uint32_t>& order, uint32_t host, uint32_t hosts);

}  // namespace trainyard::data
