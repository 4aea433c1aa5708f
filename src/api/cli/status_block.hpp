// StatusBlock draws progress bars at the bottom of a terminal, while other output scrolls above
// them. If the output cannot be redrawn, it only formats lines that stay.
//
// Threads: confined to one. Each call returns the text to write to standard error.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/job_view.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// Formats one line: "channel train   [#####.....]  45%  1.2 GiB of 2.7 GiB  algo-1".
std::string progress_line(const OutputStyle& style, const ProgressView& progress);

// Sums the progress of each transfer over its hosts.
std::vector<ProgressView> summed(const std::vector<ProgressView>& progress);
// The maximum of lines. A block has one for each transfer of each host, or, if these are too many,
// for the sum of each transfer over its hosts.
inline constexpr size_t kLinesMax = 8;

class StatusBlock {
 public:
  explicit StatusBlock(const OutputStyle& style) : style_(style) {}
  // Sets the contents of the block, and draws it. `headline` "" = none. If the output cannot be
  // redrawn, each new headline is a line that stays.
  std::string show(const std::string& headline, const std::vector<ProgressView>& progress);
  // Removes the block from the terminal, so that other output can be written there; draws it again.
  std::string hide();
  std::string draw();
  // Formats a line that stays for each transfer that all its hosts have finished, once.
  std::string settle(const std::vector<ProgressView>& progress);
  // Removes the block; further output starts in its place.
  std::string clear();

 private:
  const OutputStyle& style_;
  std::string block_;
  size_t lines_drawn_ = 0;
  std::string headline_;
  std::set<std::string> settled_;
};

}  // namespace trainyard::cli
