// In which order a channel's items come in an epoch, and which of them are this host's.
//
// The same seed and epoch give the same order on every host, so that a sharded channel is dealt out from one
// shuffled pack: over the epochs every host meets every item.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace trainyard::data {

// Items are numbered from 0. Without a seed they stay as they are.
std::vector<uint32_t> order_of(uint32_t items, std::optional<int64_t> seed, uint64_t epoch);

// Host k of n gets every n-th.
// Requires: host < hosts.
std::vector<uint32_t> share_of(const std::vector<uint32_t>& order, uint32_t host, uint32_t hosts);

}  // namespace trainyard::data
