// Reads the events of a stream, forward from a position or backward from one. Blocks that cannot
// have events of the interval are not loaded.
#include <fcntl.h>

#include <algorithm>
#include <iterator>

#include "base/check.hpp"
#include "base/thread_safety.hpp"
#include "observe/disk.hpp"
#include "observe/stream.hpp"

namespace trainyard::observe {
namespace {

LogEvent to_event(const EventRecord& record) {
  return {from_milliseconds(record.at), from_milliseconds(record.ingested),
          std::string(record.message)};
}

// Counts the events and bytes that a page may still take. The first event always fits.
struct Budget {
  size_t events;
  size_t bytes;
  bool first = true;
  bool take(size_t message_bytes) {
    const size_t cost = message_bytes + kEventOverheadBytes;
    if (!first && (events == 0 || cost > bytes)) return false;
    first = false;
    events -= std::min<size_t>(events, 1);
    bytes -= std::min(bytes, cost);
    return true;
  }
};

Error bad_position(uint64_t position) {
  return invalid("position " + std::to_string(position) + " is not the beginning of an event");
}

// Adds the events of a block to the page, from `position`. Returns true if the page is full.
Result<bool> take_from(const Stream::Span& span, uint64_t position, const TimeRange& interval,
                       Budget& budget, LogPage& page) {
  const auto bytes = TRY(Stream::load(span, position));
  RecordReader reader(bytes);
  for (;;) {
    auto record = reader.next();
    if (!record) {
      if (position == span.block.begin || page.end != position)
        return std::move(record).error().in(span.path);
      return bad_position(position);
    }
    if (!*record) return false;
    if (const auto& event = (*record)->event; event && interval.has(event->at)) {
      if (!budget.take(event->message.size())) return true;
      if (page.events.empty()) page.begin = position + (*record)->begin;
      page.events.push_back(to_event(*event));
    }
    page.end = position + (*record)->end;
  }
}

// The last events of a block that end before a position.
struct Tail {
  std::vector<LogEvent> events;
  std::optional<uint64_t> begin;  // of the first of these events
  bool full = false;              // the page has no space for earlier events
};
Result<Tail> tail_before(const Stream::Span& span, uint64_t position, const TimeRange& interval,
                         Budget& budget) {
  const auto bytes = TRY(Stream::load(span, span.block.begin));
  const std::string_view part = std::string_view(bytes).substr(
      0, std::min<uint64_t>(bytes.size(), position - span.block.begin));
  RecordReader reader(part);
  std::vector<RecordReader::Record> found;
  for (;;) {
    auto record = reader.next();
    if (!record) {
      if (part.size() == bytes.size()) return std::move(record).error().in(span.path);
      return bad_position(position);
    }
    if (!*record) break;
    if (const auto& event = (*record)->event; event && interval.has(event->at))
      found.push_back(**record);
  }
  auto first = found.end();
  while (first != found.begin() && budget.take(std::prev(first)->event->message.size())) --first;
  Tail tail;
  for (auto record = first; record != found.end(); ++record)
    tail.events.push_back(to_event(*record->event));
  if (first != found.end()) tail.begin = span.block.begin + first->begin;
  tail.full = first != found.begin();
  return tail;
}

}  // namespace

Stream::Span Stream::span_of(const Block& block) const {
  auto segment = std::upper_bound(segments_.begin(), segments_.end(), block.begin,
                                  [](uint64_t p, const Segment& s) { return p < s.base; });
  CHECK(segment != segments_.begin(), "every block lies in a segment");
  --segment;
  return {block, path(segment->number), segment->header_bytes + (block.begin - segment->base)};
}

uint64_t Stream::segment_end(size_t index) const {
  return index + 1 < segments_.size() ? segments_[index + 1].base : end();
}

Result<std::optional<Stream::Span>> Stream::span_at(uint64_t position, const TimeRange& times) {
  MutexLock lock(mutex_);
  TRY(load_locked());
  if (position > end()) return bad_position(position);
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    if (segment_end(i) <= position || !times.meets(segment.first, segment.last)) continue;
    for (auto block =
             std::upper_bound(blocks_.begin(), blocks_.end(), std::max(position, segment.base),
                              [](uint64_t p, const Block&b) { return p < b.end; });
         block != blocks_.end() && block->begin < segment_end(i); ++block)
      if (times.meets(block->first, block->last)) return std::optional<Span>(span_of(*block));
  }
  if (position < open_.end && times.meets(open_.first, open_.last))
    return std::optional<Span>(span_of(open_));
  return std::optional<Span>();
}

Result<std::optional<Stream::Span>> Stream::span_before(uint64_t position, const TimeRange& times) {
  MutexLock lock(mutex_);
  TRY(load_locked());
  if (position > end()) return bad_position(position);
  if (open_.begin < position && times.meets(open_.first, open_.last))
    return std::optional<Span>(span_of(open_));
  for (size_t i = segments_.size(); i-- > 0;) {
    const Segment& segment = segments_[i];
    if (segment.base >= position || !times.meets(segment.first, segment.last)) continue;
    auto block =
        std::lower_bound(blocks_.begin(), blocks_.end(), std::min(position, segment_end(i)),
                         [](const Block& b, uint64_t p) { return b.begin < p; });
    while (block != blocks_.begin() && (--block)->begin >= segment.base)
      if (times.meets(block->first, block->last)) return std::optional<Span>(span_of(*block));
  }
  return std::optional<Span>();
}

Result<std::vector<Stream::Part>> Stream::segments(const TimeRange& times) {
  MutexLock lock(mutex_);
  TRY(load_locked());
  std::vector<Part> found;
  for (size_t i = 0; i < segments_.size(); ++i) {
    int64_t first = segments_[i].first, last = segments_[i].last;
    if (i + 1 == segments_.size()) {
      first = std::min(first, open_.first);
      last = std::max(last, open_.last);
    }
    if (times.meets(first, last)) found.push_back({segments_[i].base, segment_end(i), first});
  }
  return found;
}

Result<std::vector<Stream::Part>> Stream::blocks(const Part& segment, const TimeRange& times) {
  MutexLock lock(mutex_);
  TRY(load_locked());
  std::vector<Part> found;
  const auto add = [&](const Block& block) {
    if (block.begin < segment.end && times.meets(block.first, block.last))
      found.push_back({block.begin, std::min(block.end, segment.end), block.first});
  };
  for (auto block = std::lower_bound(blocks_.begin(), blocks_.end(), segment.begin,
                                     [](const Block&b, uint64_t p) { return b.begin < p; });
       block != blocks_.end() && block->begin < segment.end; ++block)
    add(*block);
  if (open_.begin >= segment.begin) add(open_);
  return found;
}

Result<std::string> Stream::load(const Part& block) {
  Span span;
  {
    MutexLock lock(mutex_);
    TRY(load_locked());
    if (segments_.empty() || block.begin < begin())
      return not_found("the events were removed", LogResource::stream);
    span = span_of({.begin = block.begin, .end = block.end});
  }
  return load(span, block.begin);
}

Result<std::string> Stream::load(const Span& span, uint64_t position) {
  const Descriptor file = TRY(Descriptor::open(span.path, O_RDONLY));
  auto bytes =
      TRY(file.read(span.file_offset + (position - span.block.begin), span.block.end - position));
  if (bytes.size() != span.block.end - position)
    return corrupt(span.path + " is shorter than before");
  return bytes;
}

Result<LogPage> Stream::read(const ReadQuery& query) {
  uint64_t stream_begin, stream_end;
  {
    MutexLock lock(mutex_);
    TRY(load_locked());
    stream_begin = begin();
    stream_end = end();
  }
  // Positions before the first segment belong to events that retention removed.
  const uint64_t position =
      std::max(stream_begin, query.position.value_or(query.forward ? stream_begin : stream_end));
  if (position > stream_end) return bad_position(position);
  return query.forward ? read_forward(query, position, stream_end)
                       : read_backward(query, position, stream_begin);
}

Result<LogPage> Stream::read_forward(const ReadQuery& query, uint64_t position,
                                     uint64_t stream_end) {
  const TimeRange interval = time_range(query.from, query.to);
  Budget budget{query.events_max, query.bytes_max};
  LogPage page;
  page.begin = page.end = position;
  while (position < stream_end) {
    const auto span = TRY(span_at(position, interval));
    if (!span) {
      page.end = stream_end;
      break;
    }
    page.end = position = std::max(position, span->block.begin);
    if (TRY(take_from(*span, position, interval, budget, page))) break;
    position = page.end;
  }
  return page;
}

Result<LogPage> Stream::read_backward(const ReadQuery& query, uint64_t position,
                                      uint64_t stream_begin) {
  const TimeRange interval = time_range(query.from, query.to);
  Budget budget{query.events_max, query.bytes_max};
  LogPage page;
  page.begin = page.end = position;
  std::vector<std::vector<LogEvent>> parts;  // latest block first
  while (position > stream_begin) {
    const auto span = TRY(span_before(position, interval));
    if (!span) {
      page.begin = stream_begin;
      break;
    }
    Tail tail = TRY(tail_before(*span, position, interval, budget));
    parts.push_back(std::move(tail.events));
    if (tail.begin) page.begin = *tail.begin;
    if (tail.full) break;
    page.begin = position = span->block.begin;
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    page.events.insert(page.events.end(), std::make_move_iterator(part->begin()),
                       std::make_move_iterator(part->end()));
  return page;
}

}  // namespace trainyard::observe
