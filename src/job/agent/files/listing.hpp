// Lists all objects below a prefix: in several ranges at once if there are marks of an earlier
// listing.
//
// A store lists one page after another, a thousand keys each: a million keys need a thousand
// requests, which take minutes. Therefore a machine stores marks of each long listing, keys at
// equal distances, and the next listing requests the ranges between them at the same time. The
// result is the same as without marks, whatever was added or removed since they were made: only the
// sizes of the ranges depend on them.
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

// The limit of objects in one listing: they take some 200 MB of memory.
inline constexpr size_t kListedObjectsMax = 1'000'000;
// The minimum for each range, two pages: shorter listings are faster one page after another.
inline constexpr size_t kRangeObjectsMin = 2000;

// Lists everything below the location, in order of keys. Requires: marks are in order.
Result<std::vector<objects::ObjectInfo>> list_all(objects::Objects& objects,
                                                  const objects::Location& location,
                                                  const Interruption& interruption,
                                                  const std::vector<std::string>& marks = {});

// Returns the last key of each range except the last range; none for a short listing. Requires:
// `listed` is in order of keys.
std::vector<std::string> marks_of(const std::vector<objects::ObjectInfo>& listed);

// Stores the marks of a machine's listings in a limited number of files; removes the oldest.
class ListingMarks {
 public:
  // `endpoint` distinguishes equal names in different stores.
  ListingMarks(std::string directory, std::string endpoint)
      : directory_(std::move(directory)), endpoint_(std::move(endpoint)) {}

  // Returns an empty list if there are no marks, or if they cannot be read.
  std::vector<std::string> read(const objects::Location& location) const;
  // Replaces the marks of the location; no effect for a short listing.
  Result<void> write(const objects::Location& location,
                     const std::vector<objects::ObjectInfo>& listed) const;

 private:
  std::string path_of(const objects::Location& location) const;
  Result<void> limit_files() const;
  const std::string directory_, endpoint_;
};

}  // namespace trainyard::agent
