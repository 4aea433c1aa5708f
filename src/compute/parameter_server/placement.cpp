#include "parameter_server/placement.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "base/fnv.hpp"

namespace trainyard::parameter_server {
namespace {

uint64_t mixed(uint64_t value) {  // the finalizer of splitmix64
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

uint64_t numbers(const Table& table, const Slice& slice) {
  return (slice.end - slice.begin) * table.width;
}

// Cuts a table evenly into as few slices as the limit allows.
void cut(const Table& table, uint32_t index, std::vector<Slice>& slices) {
  const uint64_t rows_max = std::max<uint64_t>(1, kSliceNumbersMax / table.width);
  const uint64_t count = (table.rows + rows_max - 1) / rows_max;
  const uint64_t least = table.rows / count;
  const uint64_t larger = table.rows % count;
  uint64_t begin = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t end = begin + least + (i < larger ? 1 : 0);
    slices.push_back({index, begin, end, 0});
    begin = end;
  }
}

}  // namespace

Result<Placement> Placement::make(std::vector<Table> tables, uint32_t servers) {
  CHECK(servers > 0, "a placement needs at least one server");
  if (tables.size() > kTablesMax)
    return invalid(std::to_string(tables.size()) + " tables exceed the maximum of " +
                   std::to_string(kTablesMax));
  Placement made;
  made.servers_ = servers;
  made.tables_ = std::move(tables);
  std::set<std::string> names;
  uint64_t total = 0;
  for (uint32_t index = 0; index < made.tables_.size(); ++index) {
    const Table& table = made.tables_[index];
    if (!names.insert(table.name).second)
      return invalid("duplicate table name '" + table.name + "'");
    if (table.rows == 0 || table.width == 0)
      return invalid("table '" + table.name + "': rows and width must be positive");
    if (table.rows > (kNumbersMax - total) / table.width)
      return invalid("table '" + table.name + "': all tables together exceed the maximum of " +
                     std::to_string(kNumbersMax) + " numbers");
    total += table.rows * table.width;
    made.first_.push_back(made.slices_.size());
    cut(table, index, made.slices_);
  }
  made.first_.push_back(made.slices_.size());

  // Places large slices first; small ones fill the remaining capacity.
  std::vector<size_t> order(made.slices_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto size_of = [&](size_t slice) {
    return numbers(made.tables_[made.slices_[slice].table], made.slices_[slice]);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return size_of(a) > size_of(b); });
  const auto full = uint64_t(std::ceil(kLoadMax * double(total) / double(servers)));
  std::vector<uint64_t> load(servers);
  for (const size_t index : order) {
    Slice& slice = made.slices_[index];
    const uint64_t key = mixed(fnv1a(made.tables_[slice.table].name) + slice.begin);
    // Returns the first server in the slice's order that is not full; if all are full, the one with
    // the least load.
    uint32_t best = 0;
    bool best_fits = false;
    uint64_t best_preference = 0;
    for (uint32_t server = 0; server < servers; ++server) {
      const bool fits = load[server] + size_of(index) <= full;
      const uint64_t preference = mixed(key ^ mixed(server + 1));
      const bool better = fits != best_fits ? fits
                          : fits            ? preference > best_preference
                                            : load[server] < load[best];
      if (server > 0 && !better) continue;
      best = server;
      best_fits = fits;
      best_preference = preference;
    }
    slice.server = best;
    load[best] += size_of(index);
  }
  return made;
}

std::vector<Slice> Placement::of_table(uint32_t table) const {
  CHECK(table < tables_.size(), "unknown table");
  return {slices_.begin() + ptrdiff_t(first_[table]),
          slices_.begin() + ptrdiff_t(first_[table + 1])};
}

const Slice& Placement::slice_of(uint32_t table, uint64_t row) const {
  CHECK(table < tables_.size() && row < tables_[table].rows, "unknown table or row");
  const auto begin = slices_.begin() + ptrdiff_t(first_[table]);
  const auto end = slices_.begin() + ptrdiff_t(first_[table + 1]);
  return *std::prev(std::upper_bound(
      begin, end, row, [](uint64_t each, const Slice& slice) { return each < slice.begin; }));
}

uint64_t Placement::numbers_of(uint32_t server) const {
  uint64_t sum = 0;
  for (const Slice& slice : slices_) {
    if (slice.server == server) sum += numbers(tables_[slice.table], slice);
  }
  return sum;
}

uint64_t Placement::digest() const {
  uint64_t digest = servers_;
  const auto add = [&](uint64_t value) { digest = mixed(digest + value + 1); };
  for (const Table& table : tables_) {
    add(fnv1a(table.name));
    add(table.rows);
    add(table.width);
    add(uint64_t(table.rule.kind));
    for (const float each : {table.rule.learning_rate, table.rule.momentum})
      add(fnv1a({reinterpret_cast<const char*>(&each), sizeof each}));
  }
  for (const Slice& slice : slices_) add(slice.server);
  return digest;
}

}  // namespace trainyard::parameter_server
