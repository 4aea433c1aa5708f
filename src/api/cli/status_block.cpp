#include "cli/status_block.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/plural.hpp"
#include "base/text.hpp"

namespace trainyard::cli {
namespace {

constexpr int kBarWidth = 24, kBarWidthMin = 6;
constexpr int kWhatWidth = 18;
// besides the bar: the transfer, the part, the bytes ("1023 MiB of 1023 MiB") and the host
constexpr int kOtherColumns = kWhatWidth + 1 + 5 + 2 + 20 + 2 + 6;

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

std::string progress_line(const OutputStyle& style, const ProgressView& progress) {
  const bool known = progress.finished || progress.total_bytes > 0;
  // In a narrow terminal the numbers and the host need the space.
  const int width = style.columns > 0
                        ? std::clamp(style.columns - kOtherColumns, kBarWidthMin, kBarWidth)
                        : kBarWidth;
  std::string line = pad(style, plain_text(progress.what), kWhatWidth) + " ";
  line += paint(style, progress.finished ? Paint::green : Paint::cyan,
                bar(style, part_of(progress), width));
  line += known
              ? pad(style, std::to_string(int(std::floor(part_of(progress) * 100))) + "%", 5, true)
              : std::string(5, ' ');
  line += "  " + bytes_text(progress);
  if (!progress.host.empty()) line += "  " + paint(style, Paint::dim, progress.host);
  return style.columns > 0 ? fit(style, line, style.columns) : line;
}

std::vector<ProgressView> summed(const std::vector<ProgressView>& progress) {
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
    if (place.second > 1) sums[place.first].host = counted(place.second, "host");
  return sums;
}

std::string StatusBlock::hide() {
  const size_t lines = std::exchange(lines_drawn_, 0);
  return lines == 0 ? "" : "\033[" + std::to_string(lines) + "A\r\033[J";
}

std::string StatusBlock::draw() {
  if (!style_.live) return "";
  lines_drawn_ = size_t(std::count(block_.begin(), block_.end(), '\n'));
  return block_;
}

std::string StatusBlock::show(const std::string& headline,
                              const std::vector<ProgressView>& progress) {
  if (!style_.live) {
    const bool changed = std::exchange(headline_, headline) != headline && !headline.empty();
    return changed ? plain_text(headline) + "\n" : "";
  }
  std::string block;
  if (!headline.empty())
    block += paint(style_, Paint::bold, fit(style_, plain_text(headline), style_.columns)) + "\n";
  auto lines = progress.size() > kLinesMax ? summed(progress) : progress;
  if (lines.size() > kLinesMax) lines.resize(kLinesMax);
  for (const auto& one : lines) block += progress_line(style_, one) + "\n";
  if (block == block_ && lines_drawn_ > 0) return "";
  const std::string hidden = hide();
  block_ = block;
  return hidden + draw();
}

std::string StatusBlock::settle(const std::vector<ProgressView>& progress) {
  std::string lines;
  for (const auto& one : summed(progress))
    if (one.finished && settled_.insert(one.what).second)
      lines += progress_line(style_, one) + "\n";
  if (lines.empty()) return "";
  const std::string hidden = hide();
  return hidden + lines + draw();
}

std::string StatusBlock::clear() {
  block_.clear();
  return hide();
}

}  // namespace trainyard::cli
