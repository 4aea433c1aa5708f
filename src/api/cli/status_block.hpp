// StatusBlock draws progress bars at the bottom of a terminal, while log lines scroll above them.
// If the output cannot be redrawn, each transfer is printed once when it begins and once when it
// ends.
//
// Threads: confined to one. Pure: every call returns the text to write.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/job_view.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// Formats one line: "channel train   [#####.....]  45%  1.2 GiB of 2.7 GiB  algo-1".
std::string progress_line(const Looks& looks, const ProgressView& progress);

// Sums the progress per transfer if there are more than kLinesMax lines, since hosts often have the
// same transfers.
inline constexpr size_t kLinesMax = 8;
std::vector<ProgressView> summed(const std::vector<ProgressView>& progress);

class StatusBlock {
 public:
  explicit StatusBlock(const Looks& looks) : looks_(looks) {}
  // Writes log lines above the block, which is redrawn below them.
  std::string scroll(const std::string& text);
  // Sets the contents of the block. `headline`: "": none.
  std::string show(const std::string& headline, const std::vector<ProgressView>& progress);
  // Removes the block; further output starts in its place.
  std::string clear();

 private:
  std::string erase() const;
  const Looks& looks_;
  std::string block_;
  size_t lines_ = 0;
  std::string headline_;
  std::map<std::string, bool> said_;  // transfer -> true if its end was printed
};

}  // namespace trainyard::cli
