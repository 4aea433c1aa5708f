#include "cli/cache_view.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

Cell size_cell(uint64_t bytes) { return {bytes == 0 ? "" : human_bytes(bytes)}; }

std::string entries_table(const OutputStyle& style, const CacheView& cache, Instant now) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& entry : cache.entries)
    rows.push_back({{entry.name},
                    {std::to_string(entry.objects)},
                    {std::to_string(entry.blocks)},
                    size_cell(entry.bytes),
                    size_cell(entry.pinned_bytes),
                    {duration_text(std::max<Duration>(now - entry.used, Duration(0))) + " ago"}});
  return table(style,
               {{.title = "NAME", .width_min = 16, .overflow = Overflow::middle},
                {.title = "OBJECTS", .right = true, .drop = 2},
                {.title = "BLOCKS", .right = true, .drop = 3},
                {.title = "SIZE", .right = true},
                {.title = "PINNED", .right = true},
                {.title = "LAST USED", .right = true, .drop = 1}},
               rows);
}

std::string pins_table(const OutputStyle& style, const CacheView& cache) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& pin : cache.pins)
    rows.push_back(
        {{pin.name}, {pin.running ? "its job ends" : "it is removed"}, {human_bytes(pin.bytes)}});
  return table(style,
               {{.title = "PINNED BY", .width_min = 16, .overflow = Overflow::middle},
                {.title = "UNTIL", .drop = 1},
                {.title = "SIZE", .right = true}},
               rows);
}

}  // namespace

void CachedEntries::add(const CachedBlockView& block) {
  if (!has(block.bucket, block.key)) return;
  std::string name = "s3://" + block.bucket + "/";
  if (!bucket_.empty()) {
    // The prefix may end within a name.
    const size_t above = prefix_.rfind('/') == prefix_.npos ? 0 : prefix_.rfind('/') + 1;
    const size_t slash = block.key.find('/', prefix_.size());
    name = block.key.substr(above, slash == block.key.npos ? slash : slash + 1 - above);
  }
  auto& entry = entries_[name];
  entry.view.name = name;
  ++entry.view.blocks;
  entry.view.bytes += block.bytes;
  if (block.pinned) entry.view.pinned_bytes += block.bytes;
  entry.view.used = std::max(entry.view.used, block.used);
  entry.versions.emplace(block.key, block.etag);
}

std::vector<CachedEntryView> CachedEntries::all() const {
  std::vector<CachedEntryView> all;
  for (const auto& [name, entry] : entries_) {
    all.push_back(entry.view);
    all.back().objects = entry.versions.size();
  }
  return all;
}

std::string cache_page(const OutputStyle& style, const CacheView& cache, Instant now) {
  std::string text;
  if (!cache.entries.empty()) text += entries_table(style, cache, now) + "\n";
  if (!cache.pins.empty()) text += pins_table(style, cache) + "\n";
  return text + paragraph(style, human_bytes(cache.bytes) + " of " + human_bytes(cache.bytes_max) +
                                     " used, " + human_bytes(cache.pinned_bytes) + " of " +
                                     human_bytes(cache.pinned_bytes_max) + " pinned");
}

Json to_json(const CacheView& cache) {
  Json entries = Json::array(), pins = Json::array();
  for (const auto& entry : cache.entries)
    entries.push_back({{"Name", to_utf8(entry.name)},
                       {"Objects", entry.objects},
                       {"Blocks", entry.blocks},
                       {"Bytes", entry.bytes},
                       {"PinnedBytes", entry.pinned_bytes},
                       {"LastUsed", to_seconds(entry.used)}});
  for (const auto& pin : cache.pins)
    pins.push_back({{"Name", to_utf8(pin.name)}, {"Running", pin.running}, {"Bytes", pin.bytes}});
  return {{"Bytes", cache.bytes},
          {"BytesMax", cache.bytes_max},
          {"PinnedBytes", cache.pinned_bytes},
          {"PinnedBytesMax", cache.pinned_bytes_max},
          {"Entries", entries},
          {"Pins", pins}};
}

}  // namespace trainyard::cli
