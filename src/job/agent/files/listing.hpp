// Lists all objects below a prefix: in several ranges at once where marks of an earlier listing
// tell how.
//
// A store lists one page after another, a thousand keys each: a million keys are a thousand
// requests, minutes at a store some milliseconds away. A machine therefore remembers marks of each
// long listing, keys at equal distances, and the next listing requests the ranges between them at
// the same time. It returns what a listing from the beginning returns, whatever was added or
// removed since the marks were made: only the sizes of the ranges depend on them.
//
// Threads: list_all() starts threads and joins them; ListingMarks is callable from anywhere, also
// in several processes on one directory; the rest is pure. Errors: the object store's; cancelled:
// interrupted; exhausted: more than kListedObjectsMax.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/listing_marks.hpp"
#include "agent/interruption.hpp"
#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::agent {

// Objects of one listing: bounds its memory (some 200 MB).
inline constexpr size_t kListedObjectsMax = 1'000'000;
// Fewer objects than two pages for each range are listed faster one page after another.
inline constexpr size_t kRangeObjectsMin = 2000;

// Lists everything below the location, in order of keys. Requires: marks are in order.
Result<std::vector<objects::ObjectInfo>> list_all(objects::Objects& objects,
                                                  const objects::Location& location,
                                                  const Interruption& interruption,
                                                  const std::vector<std::string>& marks = {});

// Returns the last keys of all ranges but the last; none for a short listing. Requires: in order of
// keys.
std::vector<std::string> marks_of(const std::vector<objects::ObjectInfo>& listed);

// Keeps the marks of a machine's listings in files, of a limited number: the oldest are removed.
class ListingMarks {
 public:
  // `endpoint`: equal names of different stores have different marks.
  ListingMarks(std::string directory, std::string endpoint)
      : directory_(std::move(directory)), endpoint_(std::move(endpoint)) {}

  // Returns none if there are none, or if they cannot be read.
  std::vector<std::string> read(const objects::Location& location) const;
  // Replaces the marks of the location; without effect for a short listing.
  Result<void> write(const objects::Location& location,
                     const std::vector<objects::ObjectInfo>& listed) const;

 private:
  std::string path_of(const objects::Location& location) const;
  Result<void> limit_files() const;
  const std::string directory_, endpoint_;
};

}  // namespace trainyard::agent
