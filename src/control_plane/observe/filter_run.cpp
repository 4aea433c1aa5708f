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
#include <optional>
#include <queue>
#include <tuple>

#include "base/text.hpp"
#include "observe/filter_pattern.hpp"

namespace trainyard::observe {
namespace {

constexpr size_t kPageBytesMax = 1 << 20;  // as AWS

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

std::string event_id_of(const Key& key) {
  char id[64];
  std::snprintf(id, sizeof id, "%019llu%018llu%019llu",
                static_cast<unsigned long long>(std::max<int64_t>(0, key.at)),
                static_cast<unsigned long long>(key.stream),
                static_cast<unsigned long long>(key.position));
  return id;
}

class FilterRun {
 public:
  // Lifetime: `sources` and `query` outlive it.
  FilterRun(const std::vector<FilterSource>& sources, const FilterQuery& query,
            const FilterPattern& pattern, Key least)
      : sources_(sources),
        query_(query),
        pattern_(pattern),
        least_(least),
        to_(query.to ? to_milliseconds(*query.to) : INT64_MAX) {
    for (size_t i = 0; i < sources.size(); ++i) {
      const auto& source = sources[i];
      if (!source.first_event ||
          outside(to_milliseconds(*source.first_event), to_milliseconds(*source.last_event)))
        continue;
      heap_.push({.key = std::max(least_, Key{to_milliseconds(*source.first_event), source.id, 0}),
                  .source = i});
    }
  }

  Result<FilterPage> run(uint64_t scan_bytes_max) {
    while (!heap_.empty()) {
      const Item item = heap_.top();
      if (page_is_full() || (scanned_ >= scan_bytes_max && item.key > least_)) {
        page_.next_token = to_token(item.key);
        break;
      }
      heap_.pop();
      if (item.event) {
        page_bytes_ += item.event->message.size() + kEventOverheadBytes;
        page_.events.push_back(
            {sources_[item.source].name, *item.event, event_id_of(item.key), item.key.position});
        continue;
      }
      auto opened = sources_[item.source].open();
      if (!opened && opened.error().kind == Kind::not_found) continue;  // retention has removed it
      const auto stream = TRY(std::move(opened));
      if (item.span)
        TRY(add_events(item));
      else
        TRY(add_blocks(*stream, item.source));
    }
    return std::move(page_);
  }

 private:
  bool outside(int64_t first, int64_t last) const {
    return first > last || last < least_.at || (first >= to_ && query_.to);
  }
  bool page_is_full() const {
    return page_.events.size() >= std::max<size_t>(1, query_.events_max) ||
           page_bytes_ >= kPageBytesMax;
  }

  Result<void> add_blocks(Stream& stream, size_t source) {
    for (uint64_t position = 0;;) {
      const auto span = TRY(stream.span_at(position));
      if (!span) return {};
      position = span->block.end;
      if (outside(span->block.first, span->block.last)) continue;
      heap_.push(
          {.key = std::max(least_, Key{span->block.first, sources_[source].id, span->block.begin}),
           .source = source,
           .span = span});
    }
  }

  // Loads the item's block.
  Result<void> add_events(const Item& item) {
    auto loaded = Stream::load(*item.span, item.span->block.begin);
    if (!loaded && loaded.error().kind == Kind::not_found) return {};
    const auto bytes = TRY(std::move(loaded));
    scanned_ += bytes.size();
    RecordReader reader(bytes);
    while (const auto record = TRY(reader.next().in(item.span->path))) {
      const auto& event = record->event;
      if (!event || event->at >= to_ || !pattern_.matches(event->message)) continue;
      const Key key{event->at, sources_[item.source].id, item.span->block.begin + record->begin};
      if (key < least_) continue;
      heap_.push(
          {.key = key,
           .rank = 1,
           .source = item.source,
           .event = LogEvent{from_milliseconds(event->at), from_milliseconds(event->ingested),
                             std::string(event->message)}});
    }
    return {};
  }

  const std::vector<FilterSource>& sources_;
  const FilterQuery& query_;
  const FilterPattern& pattern_;
  const Key least_;
  const int64_t to_;
  std::priority_queue<Item, std::vector<Item>, Later> heap_;
  FilterPage page_;
  uint64_t scanned_ = 0;
  size_t page_bytes_ = 0;
};

}  // namespace

Result<FilterPage> run_filter(std::vector<FilterSource> sources, const FilterQuery& query,
                              uint64_t scan_bytes_max) {
  const auto pattern = TRY(FilterPattern::parse(query.pattern));
  Key least{.at = query.from ? to_milliseconds(*query.from) : INT64_MIN};
  if (!query.token.empty()) least = std::max(least, TRY(from_token(query.token)));
  return FilterRun(sources, query, pattern, least).run(scan_bytes_max);
}

}  // namespace trainyard::observe
