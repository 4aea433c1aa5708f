#include "train/shards.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/json.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::train {
namespace {

// A shard as all ranks know it.
struct SharedShard {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t largest_label = -1;
  std::vector<int> holders;  // ranks, ascending
};

std::string encode_shards(const std::vector<Shard>& shards) {
  Json list = Json::array();
  for (const Shard& shard : shards) {
    const auto& labels = shard.table.labels;
    const int32_t largest_label =
        labels.empty() ? -1 : *std::max_element(labels.begin(), labels.end());
    // Encodes names, which may contain any bytes, unlike JSON strings.
    list.push_back({{"name", to_hex(shard.name)},
                    {"rows", shard.table.rows()},
                    {"columns", shard.table.columns},
                    {"largest_label", largest_label}});
  }
  return dump(list);
}

// Decodes the description of a shard from another rank; rejects numbers that read_shards() cannot
// produce.
Result<SharedShard> decode_shard(const Json& encoded) {
  const auto within = [&](const char* name, int64_t least, int64_t most) -> Result<int64_t> {
    const int64_t value = TRY(int_at(encoded, name));
    if (value >= least && value <= most) return value;
    return corrupt(std::string(name) + " " + std::to_string(value) + " must be within " +
                   std::to_string(least) + " to " + std::to_string(most));
  };
  SharedShard shard;
  shard.rows = TRY(within("rows", 0, int64_t(kRowsMax)));
  shard.columns = TRY(within("columns", 0, int64_t(kCsvColumnsMax)));
  shard.largest_label = TRY(within("largest_label", -1, kLabelMax));
  return shard;
}

// Merges the lists of all ranks, sorted by name, which is the order on which all ranks agree.
Result<std::map<std::string, SharedShard>> collect(const std::vector<std::string>& lists) {
  std::map<std::string, SharedShard> shards;
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    const Json list = TRY(parse_json(lists[rank]));
    for (const Json& each : list) {
      const std::string name = TRY(from_hex(TRY(string_at(each, "name"))));
      const SharedShard shard =
          TRY(decode_shard(each).in("shard list of rank " + std::to_string(rank)));
      const auto [known, is_new] = shards.try_emplace(name, shard);
      if (!is_new && (known->second.rows != shard.rows || known->second.columns != shard.columns)) {
        return invalid("shard " + name + " has " + std::to_string(shard.rows) +
                       " rows on one host and " + std::to_string(known->second.rows) +
                       " on another");
      }
      known->second.holders.push_back(int(rank));
    }
  }
  return shards;
}

}  // namespace

Result<std::vector<Shard>> read_shards(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code fault;
  for (fs::recursive_directory_iterator each(folder, fault), end; !fault && each != end;
       each.increment(fault)) {
    if (each->is_regular_file(fault))
      names.push_back(each->path().lexically_relative(folder).string());
  }
  if (fault == std::errc::no_such_file_or_directory) return std::vector<Shard>{};
  if (fault) return from_errno("reading " + folder, fault.value());
  std::sort(names.begin(), names.end());

  std::vector<Shard> shards;
  for (std::string& name : names) {
    const std::string path = folder + "/" + name;
    const std::string text = TRY(os::read_file(path, kShardBytesMax));
    Table table = TRY(parse_csv(text).in(path));
    shards.push_back({std::move(name), std::move(table)});
  }
  return shards;
}

Result<Rows> Rows::agree(std::vector<Shard> shards, collectives::Group& group) {
  const auto lists = TRY(group.all_gather(encode_shards(shards)).in("comparing shards"));
  const auto agreed = TRY(collect(lists));

  Rows rows;
  rows.shards_of_all_ = agreed.size();
  size_t shared = 0;
  for (const auto& each : agreed) {
    const std::string& name = each.first;
    const SharedShard& shard = each.second;
    if (shard.rows == 0) continue;
    if (rows.columns_ == 0) rows.columns_ = size_t(shard.columns);
    if (rows.columns_ != size_t(shard.columns)) {
      return invalid("shard " + name + " has " + std::to_string(shard.columns) +
                     " features per row, but other shards have " + std::to_string(rows.columns_));
    }
    rows.largest_label_ = std::max(rows.largest_label_, int32_t(shard.largest_label));

    // Assigns shards that several ranks hold to these ranks round-robin.
    const int owner = shard.holders[shared++ % shard.holders.size()];
    if (owner == group.rank()) {
      const auto ours = std::find_if(shards.begin(), shards.end(),
                                     [&](const Shard& s) { return s.name == name; });
      CHECK(ours != shards.end(), "shards that belong to this host are in its list");
      rows.own_rows_ += ours->table.rows();
      rows.blocks_.push_back({rows.all_, std::move(ours->table)});
    }
    rows.all_ += uint64_t(shard.rows);
    if (rows.all_ > kRowsMax)
      return exhausted("the channel has more than " + std::to_string(kRowsMax) + " rows");
  }
  return rows;
}

const Rows::Block* Rows::find(uint64_t row) const {
  auto after =
      std::upper_bound(blocks_.begin(), blocks_.end(), row,
                       [](uint64_t wanted, const Block& block) { return wanted < block.begin; });
  if (after == blocks_.begin()) return nullptr;
  --after;
  return row - after->begin < after->table.rows() ? &*after : nullptr;
}

std::span<const float> Rows::features(uint64_t row) const {
  const Block* block = find(row);
  CHECK(block, "the row must belong to this host");
  return block->table.row(row - block->begin);
}

int32_t Rows::label(uint64_t row) const {
  const Block* block = find(row);
  CHECK(block, "the row must belong to this host");
  return block->table.labels[row - block->begin];
}

std::vector<uint32_t> shuffled_rows(uint64_t rows, uint64_t seed, uint64_t epoch) {
  CHECK(rows <= kRowsMax, "rows must be at most kRowsMax");
  std::vector<uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0u);
  SeededRandom random(mix(seed, epoch));
  for (uint64_t left = rows; left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
  // Applies the finisher of splitmix64 after each word, so that neighbouring seeds give unrelated
  // results.
  uint64_t mixed = 0x9e3779b97f4a7c15;
  for (const uint64_t word : {a, b, c}) {
    mixed += word + 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
  }
  return mixed;
}

}  // namespace trainyard::train
