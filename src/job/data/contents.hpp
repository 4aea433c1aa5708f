// What a channel streams, epoch by epoch: its objects, or the lines of its augmented manifest.
//
// Threads: immutable once made; a source that it gives is confined to one thread at a time. Lifetime: a
// source must not outlive its Contents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/feed.hpp"

namespace trainyard::data {

// How items are given to hosts.
struct Deal {
  std::optional<int64_t> seed;  // shuffled anew each epoch; nothing: in order
  bool sharded = false;         // each item to one host, else all to all
  uint32_t host = 0, hosts = 1;
};

class Contents {
 public:
  explicit Contents(std::vector<objects::Location> objects) : objects_(std::move(objects)) {}
  // Of an augmented manifest's text. Errors: invalid.
  static Result<Contents> of_lines(std::string text, std::vector<std::string> attribute_names);

  // The items of one epoch; a line gives one for each attribute. Errors of the source: invalid, naming the
  // line.
  Feed::Source epoch(uint64_t epoch, const Deal& deal) const;
  size_t size() const { return objects_.empty() ? lines_.size() : objects_.size(); }

 private:
  Contents() = default;
  struct Line {
    size_t begin, size;  // in text_
  };
  Result<std::vector<Item>> items_of(uint32_t number) const;

  std::vector<objects::Location> objects_;
  std::string text_;
  std::vector<Line> lines_;
  std::vector<std::string> attribute_names_;
};

}  // namespace trainyard::data
