// Produces the items that a channel streams in each epoch: its objects, or the lines of its
// augmented manifest.
//
// Threads: immutable once made; each source is used by one thread at a time. Lifetime: a source
// must not outlive its Contents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/feed.hpp"

namespace trainyard::data {

// How items are distributed to hosts.
struct Deal {
  std::optional<int64_t> seed;  // of the shuffle, which differs in each epoch; nullopt: in order
  bool sharded = false;         // true: one host gets each item; false: all hosts get all items
  uint32_t host = 0, hosts = 1;
};

class Contents {
 public:
  explicit Contents(std::vector<objects::Location> objects) : objects_(std::move(objects)) {}
  // Makes contents from the text of an augmented manifest. Errors: invalid.
  static Result<Contents> of_lines(std::string text, std::vector<std::string> attribute_names);

  // Returns the items of one epoch; a line has one for each attribute. Errors of the source:
  // invalid, naming the line.
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
