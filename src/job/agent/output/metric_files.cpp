#include "agent/output/metric_files.hpp"

#include <unistd.h>

#include <utility>

namespace trainyard::agent {
namespace {

// Returns the bytes from `from` on, at most kMetricBytesPerPassMax.
std::string read_from(const os::File& file, uint64_t from) {
  std::string bytes(kMetricBytesPerPassMax, '\0');
  const ssize_t got =
      ::pread(file.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(from));
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

}  // namespace

std::vector<wire::MetricPoint> MetricFiles::read_new(const Tree& base, Instant now) {
  std::vector<wire::MetricPoint> points;
  (void)read_all(base, now, false, points);
  return points;
}

void MetricFiles::read_rest(const Tree& base, Instant now, const Consume& consume) {
  bool more = true;
  for (int passes = 0; passes < kMetricLastPassesMax && more; ++passes) {
    std::vector<wire::MetricPoint> points;
    more = read_all(base, now, true, points);
    more = consume(std::move(points)) && more;
  }
}

bool MetricFiles::read_all(const Tree& base, Instant now, bool last,
                           std::vector<wire::MetricPoint>& points) {
  bool more = false;
  std::map<std::string, uint64_t> read_to;  // of the files that exist now
  (void)base.walk(kMetricFilesDirectory, [&](const Tree::Entry& entry) -> Result<void> {
    if (!S_ISREG(entry.status.st_mode) || entry.path.find('/') != std::string::npos ||
        !entry.path.ends_with(".json"))
      return ok();
    if (read_to.size() >= kMetricFilesMax)
      return exhausted("more than " + std::to_string(kMetricFilesMax) + " metric files");
    uint64_t& at = read_to[entry.path];
    if (const auto before = read_to_.find(entry.path); before != read_to_.end())
      at = before->second;
    const auto size = static_cast<uint64_t>(entry.status.st_size);
    if (size < at) at = 0;  // the file was replaced or truncated
    if (size == at) return ok();
    if (points.size() >= kMetricPointsPerPassMax) {
      more = true;
      return ok();
    }
    const auto file = base.open_file(std::string(kMetricFilesDirectory) + "/" + entry.path);
    if (!file) return ok();
    const std::string bytes = read_from(*file, at);
    size_t begin = 0;
    for (size_t end; points.size() < kMetricPointsPerPassMax &&
                     (end = bytes.find('\n', begin)) != std::string::npos;
         begin = end + 1)
      if (auto point = parse_metric_line(std::string_view(bytes).substr(begin, end - begin), now))
        points.push_back(std::move(*point));
    // The rest is an incomplete line, the last line, a line that is too long, or left for the next
    // pass.
    const bool full = points.size() >= kMetricPointsPerPassMax;
    const bool to_the_end = !full && bytes.size() < kMetricBytesPerPassMax;
    if (last && to_the_end)
      if (auto point = parse_metric_line(std::string_view(bytes).substr(begin), now))
        points.push_back(std::move(*point));
    if (!full && ((last && to_the_end) || bytes.size() - begin > kMetricLineBytesMax))
      begin = bytes.size();
    at += begin;
    more |= begin > 0 && !to_the_end;
    return ok();
  });
  read_to_ = std::move(read_to);
  return more;
}

}  // namespace trainyard::agent
