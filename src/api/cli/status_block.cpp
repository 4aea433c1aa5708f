#include "cli/status_block.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace trainyard::cli {
namespace {

constexpr int kBarWidth = 24;
constexpr int kWhatWidth = 18;

double part_of(const ProgressView& progress) {
  if (progress.finished) return 1;
  return progress.total_bytes > 0 ? double(progress.done_bytes) / double(progress.total_bytes) : 0;
}

std::string bytes_text(const ProgressView& progress) {
  const std::string done = human_bytes(uint64_t(std::max<int64_t>(0, progress.done_bytes)));
  if (progress.total_bytes <= 0 || progress.finished) return done;
  return done + " of " + human_bytes(uint64_t(progress.total_bytes));
}

}  // namespace

std::string progress_line(const Looks& looks, const ProgressView& progress) {
  const bool known = progress.finished || progress.total_bytes > 0;
  std::string line = pad(looks, progress.what, kWhatWidth) + " ";
  line += paint(looks, progress.finished ? Paint::green : Paint::cyan,
                bar(looks, part_of(progress), kBarWidth));
  line += known
              ? pad(looks, std::to_string(int(std::floor(part_of(progress) * 100))) + "%", 5, true)
              : std::string(5, ' ');
  line += "  " + bytes_text(progress);
  if (!progress.host.empty()) line += "  " + paint(looks, Paint::dim, progress.host);
  return looks.columns > 0 ? fit(looks, line, looks.columns) : line;
}

std::vector<ProgressView> summed(const std::vector<ProgressView>& progress) {
  if (progress.size() <= kLinesMax) return progress;
  std::vector<ProgressView> sums;
  // transfer -> index of its sum, number of hosts
  std::map<std::string, std::pair<size_t, size_t>> places;
  for (const auto& one : progress) {
    const auto [place, made] = places.try_emplace(one.what, sums.size(), 0);
    ++place->second.second;
    if (made) {
      sums.push_back(one);
      continue;
    }
    ProgressView& sum = sums[place->second.first];
    sum.done_bytes += one.done_bytes;
    // If one size is unknown, the sum is unknown.
    sum.total_bytes =
        sum.total_bytes > 0 && one.total_bytes > 0 ? sum.total_bytes + one.total_bytes : 0;
    sum.finished = sum.finished && one.finished;
  }
  for (const auto& [what, place] : places)
    if (place.second > 1) sums[place.first].host = std::to_string(place.second) + " hosts";
  if (sums.size() > kLinesMax) sums.resize(kLinesMax);
  return sums;
}

std::string StatusBlock::erase() const {
  if (lines_ == 0) return "";
  return "\033[" + std::to_string(lines_) + "A\r\033[J";
}

std::string StatusBlock::scroll(const std::string& text) {
  if (!looks_.live || text.empty()) return text;
  return erase() + text + block_;
}

std::string StatusBlock::show(const std::string& headline,
                              const std::vector<ProgressView>& progress) {
  if (!looks_.live) {
    std::string said;
    if (headline != headline_ && !headline.empty()) said += headline + "\n";
    headline_ = headline;
    for (const auto& one : progress) {
      const auto [place, made] = said_.try_emplace(one.host + " " + one.what, false);
      if (made && !one.finished) said += progress_line(looks_, one) + "\n";
      if (one.finished && !place->second) said += progress_line(looks_, one) + "\n";
      place->second = one.finished;
    }
    return said;
  }
  std::string block;
  size_t lines = 0;
  if (!headline.empty())
    block += paint(looks_, Paint::bold, fit(looks_, headline, looks_.columns)) + "\n", ++lines;
  for (const auto& one : summed(progress)) block += progress_line(looks_, one) + "\n", ++lines;
  const std::string out = block == block_ ? "" : erase() + block;
  block_ = block;
  lines_ = lines;
  return out;
}

std::string StatusBlock::clear() {
  const std::string out = looks_.live ? erase() : "";
  block_.clear();
  lines_ = 0;
  return out;
}

}  // namespace trainyard::cli
