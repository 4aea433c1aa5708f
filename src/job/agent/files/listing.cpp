#include "agent/files/listing.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "os/files.hpp"
#include "os/parallel.hpp"

namespace trainyard::agent {
namespace {

// The limit of prefixes with marks: their files take some megabytes.
constexpr size_t kMarksFilesMax = 1000;

// The keys behind `after` up to `last`; nullopt: up to the end of the prefix.
struct KeyRange {
  std::string after;
  std::optional<std::string> last;
};

Result<std::vector<objects::ObjectInfo>> list_range(objects::Objects& objects,
                                                    const objects::Location& location,
                                                    const KeyRange& range,
                                                    const Interruption& interruption,
                                                    std::atomic<size_t>& listed) {
  std::vector<objects::ObjectInfo> found;
  objects::ListQuery query;
  query.prefix = location.key;
  query.start_after = range.after;
  do {
    TRY(interruption.check());
    auto page = TRY(objects.list(location.bucket, query));
    bool ended = false;
    for (auto& each : page.objects) {
      ended = range.last && each.key > *range.last;
      if (ended) break;
      found.push_back(std::move(each));
      ++listed;
    }
    if (listed > kListedObjectsMax)
      return exhausted("listing objects: more than the supported " +
                       std::to_string(kListedObjectsMax) + " objects");
    query.start_after = ended ? "" : page.next;
  } while (!query.start_after.empty());
  return found;
}

std::vector<KeyRange> ranges_between(const std::string& prefix,
                                     const std::vector<std::string>& marks) {
  std::vector<KeyRange> ranges;
  std::string after;
  for (const auto& mark : marks) {
    if (!mark.starts_with(prefix)) continue;
    ranges.push_back({after, mark});
    after = mark;
  }
  ranges.push_back({after, {}});
  return ranges;
}

}  // namespace

Result<std::vector<objects::ObjectInfo>> list_all(objects::Objects& objects,
                                                  const objects::Location& location,
                                                  const Interruption& interruption,
                                                  const std::vector<std::string>& marks) {
  const auto ranges = ranges_between(location.key, marks);
  std::vector<std::vector<objects::ObjectInfo>> parts(ranges.size());
  std::atomic<size_t> listed = 0;
  TRY(os::for_each_in_parallel(ranges.size(), kListedRangesMax, [&](size_t i) -> Result<void> {
    parts[i] = TRY(list_range(objects, location, ranges[i], interruption, listed));
    return {};
  }));
  if (parts.size() == 1) return std::move(parts[0]);
  std::vector<objects::ObjectInfo> all;
  all.reserve(listed);
  for (auto& part : parts)
    all.insert(all.end(), std::make_move_iterator(part.begin()),
               std::make_move_iterator(part.end()));
  return all;
}

std::vector<std::string> marks_of(const std::vector<objects::ObjectInfo>& listed) {
  const size_t ranges = std::min(kListedRangesMax, listed.size() / kRangeObjectsMin);
  std::vector<std::string> marks;
  for (size_t i = 1; i < ranges; ++i) marks.push_back(listed[i * listed.size() / ranges - 1].key);
  return marks;
}

std::string ListingMarks::path_of(const objects::Location& location) const {
  // No part has a NUL.
  const std::string name = endpoint_ + '\0' + location.bucket + '\0' + location.key;
  return directory_ + "/" + to_hex(trainyard::bytes_of(sha256(name)));
}

std::vector<std::string> ListingMarks::read(const objects::Location& location) const {
  const auto text = os::read_file(path_of(location), kMarksFileBytesMax);
  if (!text) return {};
  auto marks = decode_marks(*text);
  return marks ? *std::move(marks) : std::vector<std::string>();
}

Result<void> ListingMarks::write(const objects::Location& location,
                                 const std::vector<objects::ObjectInfo>& listed) const {
  const auto marks = marks_of(listed);
  if (marks.empty()) return {};
  TRY(os::make_directories(directory_, 0700));
  TRY(limit_files());
  // Not durable: without marks a listing only takes longer.
  return os::write_file(path_of(location), encode_marks(marks), 0600);
}

Result<void> ListingMarks::limit_files() const {
  const auto names = TRY(os::list_directory(directory_));
  if (names.size() < kMarksFilesMax) return {};
  std::string oldest;
  time_t oldest_at = 0;
  for (const auto& name : names) {
    struct stat status {};
    const std::string path = directory_ + "/" + name;
    if (::lstat(path.c_str(), &status) != 0) continue;
    if (oldest.empty() || status.st_mtime < oldest_at) oldest = path, oldest_at = status.st_mtime;
  }
  if (!oldest.empty()) ::unlink(oldest.c_str());
  return {};
}

}  // namespace trainyard::agent
