// StatusBlock draws progress bars at the bottom of a terminal, while other output scrolls above
// them. If its output cannot be redrawn, it only has the lines that stay.
//
// Threads: confined to one. Pure: every call returns the text to write to the block's output, which
// is standard error: standard output has results.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/job_view.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// Formats one line: "channel train   [#####.....]  45%  1.2 GiB of 2.7 GiB  algo-1".
std::string progress_line(const Looks& looks, const ProgressView& progress);

// Sums the progress of each transfer over its hosts.
std::vector<ProgressView> summed(const std::vector<ProgressView>& progress);
// A block has a line for each transfer of each host; sums, if there are more.
inline constexpr size_t kLinesMax = 8;

class StatusBlock {
 public:
  explicit StatusBlock(const Looks& looks) : looks_(looks) {}
  // Sets the contents of the block, and draws it. `headline`: "": none; if it cannot be redrawn,
  // each new headline is a line.
  std::string show(const std::string& headline, const std::vector<ProgressView>& progress);
  // Removes the block from the terminal, so that other output can be written there; draws it again.
  std::string hide();
  std::string draw();
  // Formats lines that stay: one for each transfer that all its hosts have finished. Each transfer
  // is formatted once.
  std::string settle(const std::vector<ProgressView>& progress);
  // Removes the block; further output starts in its place.
  std::string clear();

 private:
  const Looks& looks_;
  std::string block_;
  size_t lines_drawn_ = 0;
  std::string headline_;
  std::set<std::string> settled_;
};

}  // namespace trainyard::cli
