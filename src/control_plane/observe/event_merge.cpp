#include "observe/event_merge.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace trainyard::observe {

bool EventMerge::Later::operator()(const Item& a, const Item& b) const {
  return std::tie(a.key, a.kind) > std::tie(b.key, b.kind);
}

EventMerge::EventMerge(std::vector<FilterSource> sources, const MergeSettings& settings)
    : sources_(std::move(sources)), settings_(settings) {
  for (size_t i = 0; i < sources_.size(); ++i) {
    const FilterSource& source = sources_[i];
    if (!source.first_event) continue;
    const int64_t first = to_milliseconds(*source.first_event);
    if (!settings_.times.meets(first, to_milliseconds(*source.last_event))) continue;
    heap_.push({.key = std::max(settings_.least, EventKey{first, source.id, 0}),
                .kind = Kind::stream,
                .source = uint32_t(i)});
  }
}

Result<std::optional<FilteredEvent>> EventMerge::step() {
  const bool reads = reads_next();
  const Item item = heap_.top();
  heap_.pop();
  if (!reads) return std::optional<FilteredEvent>(take(item));
  TRY(open(item));
  return std::optional<FilteredEvent>();
}

FilteredEvent EventMerge::take(const Item& item) {
  Loaded& block = loaded_[item.slot];
  const Event& event = block.events[block.next++];
  FilteredEvent found{.stream = sources_[item.source].name,
                      .event = {from_milliseconds(event.at), from_milliseconds(event.ingested),
                                block.text.substr(event.begin, event.bytes)},
                      .id = "",
                      .position = event.position};
  push_next(item);
  return found;
}

void EventMerge::push_next(Item item) {
  const Loaded& block = loaded_[item.slot];
  if (block.next == block.events.size()) return release(item.slot);
  const Event& next = block.events[block.next];
  item.kind = Kind::loaded;
  item.key = {next.at, sources_[item.source].id, next.position};
  heap_.push(item);
}

Result<void> EventMerge::open(const Item& item) {
  if (item.kind == Kind::loaded) release(item.slot);
  auto opened = sources_[item.source].open();
  // Retention has removed the stream.
  if (!opened && opened.error().kind == trainyard::Kind::not_found) return ok();
  const auto stream = TRY(std::move(opened));
  if (item.kind == Kind::stream)
    add_parts(item, Kind::segment, TRY(stream->segments(settings_.times)));
  else if (item.kind == Kind::segment)
    add_parts(item, Kind::block, TRY(stream->blocks(item.part, settings_.times)));
  else
    TRY(load(*stream, item));
  return ok();
}

void EventMerge::add_parts(const Item& item, Kind kind, const std::vector<Stream::Part>& parts) {
  for (const Stream::Part& part : parts)
    heap_.push({.key = std::max(settings_.least,
                                EventKey{part.first, sources_[item.source].id, part.begin}),
                .kind = kind,
                .source = item.source,
                .part = part});
}

Result<void> EventMerge::load(Stream& stream, const Item& item) {
  auto loaded = stream.load(item.part);
  if (!loaded && loaded.error().kind == trainyard::Kind::not_found) return ok();
  const auto bytes = TRY(std::move(loaded));
  bytes_read_ += bytes.size();
  Loaded block = TRY(decode(bytes, item).in("log stream " + sources_[item.source].name));
  if (!block.events.empty()) hold(item, std::move(block));
  return ok();
}

Result<EventMerge::Loaded> EventMerge::decode(const std::string& bytes, const Item& item) {
  Loaded block;
  const uint64_t id = sources_[item.source].id;
  RecordReader reader(bytes);
  while (const auto record = TRY(reader.next())) {
    const auto& event = record->event;
    if (!event || !settings_.times.has(event->at)) continue;
    const uint64_t position = item.part.begin + record->begin;
    if (EventKey{event->at, id, position} < item.key) continue;
    if (!item.seen) {
      ++events_seen_;
      message_bytes_seen_ += event->message.size();
    }
    if (settings_.wanted && !settings_.wanted(event->message)) continue;
    block.events.push_back(
        {event->at, event->ingested, position, block.text.size(), event->message.size()});
    block.text += event->message;
  }
  // Stable: events of one time stay in the order of their positions.
  const auto earlier = [](const Event& a, const Event& b) { return a.at < b.at; };
  if (!std::ranges::is_sorted(block.events, earlier))
    std::ranges::stable_sort(block.events, earlier);
  return block;
}

void EventMerge::hold(const Item& item, Loaded block) {
  block.held_bytes = block.text.capacity() + block.events.capacity() * sizeof(Event);
  held_bytes_ += block.held_bytes;
  size_t slot = loaded_.size();
  if (free_.empty()) {
    loaded_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  loaded_[slot] = std::move(block);
  Item next = item;
  next.slot = slot;
  next.seen = true;
  push_next(next);
  while (held_bytes_ > settings_.held_bytes_max && drop_latest(slot)) continue;
}

bool EventMerge::drop_latest(size_t except_slot) {
  Loaded* latest = nullptr;
  int64_t at = INT64_MIN;
  for (size_t i = 0; i < loaded_.size(); ++i) {
    Loaded& block = loaded_[i];
    if (i == except_slot || block.next == block.events.size()) continue;
    if (latest && block.events[block.next].at <= at) continue;
    latest = &block;
    at = block.events[block.next].at;
  }
  if (!latest) return false;
  held_bytes_ -= latest->held_bytes;
  *latest = {.dropped = true};
  return true;
}

void EventMerge::release(size_t slot) {
  held_bytes_ -= loaded_[slot].held_bytes;
  loaded_[slot] = {};
  free_.push_back(slot);
}

}  // namespace trainyard::observe
