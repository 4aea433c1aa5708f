// Returns events in the order of their key (time, stream, position). A heap holds streams that are
// not open yet, blocks that are not loaded yet, and events that matched, each with the least key
// that it can yield. The top of the heap is opened, loaded, or added to the page. So blocks are
// read only when the merge reaches them, and only events of blocks that overlap in time are in
// memory. When the page is full, the key at the top is the token.
//
// Cost: reads each block once that overlaps both the page's time and the query. The next page reads
// one block per stream again.
#include "observe/filter_run.hpp"

#include <algorithm>
#include <cstdio>
#include <queue>
#include <tuple>

#include "base/text.hpp"
#include "observe/filter_pattern.hpp"

namespace trainyard::observe {
namespace {

constexpr size_t kPageBytesMax = 1 << 20;  // as AWS
constexpr size_t kEventOverheadBytes = 26;

struct Key {
  int64_t at = INT64_MIN;
  uint64_t stream = 0;
  uint64_t position = 0;
  auto operator<=>(const Key&) const = default;
};

std::string to_token(const Key& key) {
  char text[64];
  std::snprintf(text, sizeof text, "%016llx%016llx%016llx", static_cast<unsigned long long>(key.at),
                static_cast<unsigned long long>(key.stream),
                static_cast<unsigned long long>(key.position));
  return text;
}

Result<Key> from_token(const std::string& token) {
  const auto bytes = token.size() == 48 ? from_hex(token) : Result<std::string>(invalid(""));
  if (!bytes) return invalid("The specified nextToken is invalid.");
  uint64_t numbers[3] = {};
  for (size_t i = 0; i < 24; ++i) numbers[i / 8] = numbers[i / 8] << 8 | uint8_t((*bytes)[i]);
  return Key{int64_t(numbers[0]), numbers[1], numbers[2]};
}

struct Item {
  Key key;
  int rank = 0;  // at equal keys, streams and blocks come before events
  size_t source = 0;
  std::optional<Stream::Span> span;
  std::optional<LogEvent> event;
};
struct Later {
  bool operator()(const Item& a, const Item& b) const {
    return std::tie(a.key, a.rank) > std::tie(b.key, b.rank);
  }
};

}  // namespace

Result<FilterPage> run_filter(std::vector<FilterSource> sources, const FilterQuery& query,
                              uint64_t scan_bytes_max) {
  const auto pattern = TRY(FilterPattern::parse(query.pattern));
  Key least{.at = query.from ? to_milliseconds(*query.from) : INT64_MIN};
  if (!query.token.empty()) least = std::max(least, TRY(from_token(query.token)));
  const int64_t to = query.to ? to_milliseconds(*query.to) : INT64_MAX;
  const auto outside = [&](int64_t first, int64_t last) {
    return first > last || last < least.at || (first >= to && query.to);
  };

  std::priority_queue<Item, std::vector<Item>, Later> heap;
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& source = sources[i];
    if (!source.first_event ||
        outside(to_milliseconds(*source.first_event), to_milliseconds(*source.last_event)))
      continue;
    heap.push({.key = std::max(least, Key{to_milliseconds(*source.first_event), source.id, 0}),
               .source = i});
  }

  FilterPage page;
  uint64_t scanned = 0;
  size_t page_bytes = 0;
  while (!heap.empty()) {
    const Item item = heap.top();
    const bool full =
        page.events.size() >= std::max<size_t>(1, query.events_max) || page_bytes >= kPageBytesMax;
    if (full || (scanned >= scan_bytes_max && item.key > least)) {
      page.next_token = to_token(item.key);
      return page;
    }
    heap.pop();
    const auto& source = sources[item.source];
    if (item.event) {
      char id[64];
      std::snprintf(id, sizeof id, "%019llu%018llu%019llu",
                    static_cast<unsigned long long>(std::max<int64_t>(0, item.key.at)),
                    static_cast<unsigned long long>(item.key.stream),
                    static_cast<unsigned long long>(item.key.position));
      page_bytes += item.event->message.size() + kEventOverheadBytes;
      page.events.push_back({source.name, *item.event, id});
      continue;
    }
    auto opened = source.open();
    if (!opened && opened.error().kind == Kind::not_found) continue;  // retention has removed it
    const auto stream = TRY(std::move(opened));
    if (!item.span) {
      for (uint64_t position = 0;;) {
        const auto span = TRY(stream->span_at(position));
        if (!span) break;
        position = span->block.end;
        if (outside(span->block.first, span->block.last)) continue;
        heap.push({.key = std::max(least, Key{span->block.first, source.id, span->block.begin}),
                   .source = item.source,
                   .span = span});
      }
      continue;
    }
    auto loaded = Stream::load(*item.span, item.span->block.begin);
    if (!loaded && loaded.error().kind == Kind::not_found) continue;
    const auto bytes = TRY(std::move(loaded));
    scanned += bytes.size();
    RecordReader reader(bytes);
    while (const auto record = TRY(reader.next().in(item.span->path))) {
      const auto& event = record->event;
      if (!event || event->at >= to || !pattern.matches(event->message)) continue;
      const Key key{event->at, source.id, item.span->block.begin + record->begin};
      if (key < least) continue;
      heap.push({.key = key,
                 .rank = 1,
                 .source = item.source,
                 .event = LogEvent{from_milliseconds(event->at), from_milliseconds(event->ingested),
                                   std::string(event->message)}});
    }
  }
  return page;
}

}  // namespace trainyard::observe
