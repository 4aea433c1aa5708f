#include "observe/filter_run.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.hpp"
#include "observe/filter_pattern.hpp"

namespace trainyard::observe {
namespace {

constexpr size_t kPageBytesMax = 1 << 20;  // as AWS
constexpr size_t kScanPageEvents = 10'000;

std::string to_token(const EventKey& key) {
  char text[64];
  std::snprintf(text, sizeof text, "%016llx%016llx%016llx", static_cast<unsigned long long>(key.at),
                static_cast<unsigned long long>(key.stream),
                static_cast<unsigned long long>(key.position));
  return text;
}

Result<EventKey> from_token(const std::string& token) {
  const auto bytes = token.size() == 48 ? from_hex(token) : Result<std::string>(invalid(""));
  if (!bytes) return invalid("The specified nextToken is invalid.");
  uint64_t numbers[3] = {};
  for (size_t i = 0; i < 24; ++i) numbers[i / 8] = numbers[i / 8] << 8 | uint8_t((*bytes)[i]);
  return EventKey{int64_t(numbers[0]), numbers[1], numbers[2]};
}

std::string event_id_of(const EventKey& key) {
  char id[64];
  std::snprintf(id, sizeof id, "%019llu%018llu%019llu",
                static_cast<unsigned long long>(std::max<int64_t>(0, key.at)),
                static_cast<unsigned long long>(key.stream),
                static_cast<unsigned long long>(key.position));
  return id;
}

// Counts the events of a page.
struct PageLimit {
  size_t events_left;
  size_t bytes = 0;
  bool full() const { return events_left == 0 || bytes >= kPageBytesMax; }
  void add(const FilteredEvent& found) {
    --events_left;
    bytes += found.event.message.size() + kEventOverheadBytes;
  }
};

class MergedScan final : public LogScan {
 public:
  MergedScan(std::vector<FilterSource> sources, const MergeSettings& settings,
             uint64_t page_read_max)
      : merge_(std::move(sources), settings), page_read_max_(page_read_max) {}

  Result<ScanPage> next() override {
    ScanPage page;
    PageLimit limit{kScanPageEvents};
    const uint64_t read_max = merge_.bytes_read() + page_read_max_;
    while (!merge_.ended() && !limit.full() && merge_.bytes_read() < read_max) {
      reached_ = std::max(reached_, merge_.key().at);
      auto found = TRY(merge_.step());
      if (!found) continue;
      limit.add(*found);
      page.events.push_back(*std::move(found));
    }
    page.ended = merge_.ended();
    page.reached = from_milliseconds(reached_);
    page.scanned = merge_.events_seen();
    page.scanned_bytes = merge_.message_bytes_seen();
    page.read_bytes = merge_.bytes_read();
    return page;
  }

 private:
  EventMerge merge_;
  const uint64_t page_read_max_;
  int64_t reached_ = 0;
};

}  // namespace

Result<FilterPage> run_filter(std::vector<FilterSource> sources, const FilterQuery& query,
                              const LogSettings& settings) {
  const auto pattern = TRY(FilterPattern::parse(query.pattern));
  TimeRange times = time_range(query.from, query.to);
  EventKey least{.at = times.from};
  if (!query.token.empty()) least = std::max(least, TRY(from_token(query.token)));
  times.from = least.at;
  EventMerge merge(std::move(sources),
                   {.times = times,
                    .least = least,
                    .wanted = [&pattern](std::string_view m) { return pattern.matches(m); },
                    .held_bytes_max = settings.scan_held_bytes_max});
  FilterPage page;
  PageLimit limit{std::max<size_t>(1, query.events_max)};
  while (!merge.ended()) {
    const EventKey key = merge.key();
    const bool read_enough = merge.bytes_read() >= settings.filter_scan_bytes_max;
    // Events in memory are returned first: so each page has some, however many streams overlap.
    if (limit.full() || (read_enough && merge.reads_next() && key > least)) {
      page.next_token = to_token(key);
      break;
    }
    auto found = TRY(merge.step());
    if (!found) continue;
    limit.add(*found);
    found->id = event_id_of(key);
    page.events.push_back(*std::move(found));
  }
  return page;
}

std::unique_ptr<LogScan> make_scan(std::vector<FilterSource> sources, const ScanQuery& query,
                                   const LogSettings& settings) {
  const TimeRange times = time_range(query.from, query.to);
  return std::make_unique<MergedScan>(std::move(sources),
                                      MergeSettings{.times = times,
                                                    .least = {.at = times.from},
                                                    .wanted = query.wanted,
                                                    .held_bytes_max = settings.scan_held_bytes_max},
                                      settings.filter_scan_bytes_max);
}

}  // namespace trainyard::observe
