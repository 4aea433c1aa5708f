// The lines that stay at the foot of a terminal while others scroll by above: progress bars. Where lines cannot be
// drawn again, each thing is said once when it begins and once when it is done.
//
// Threads: confined to one. Pure: every call answers with the text to write.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/job_view.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// "channel train   [#####.....]  45%  1.2 GiB of 2.7 GiB  algo-1"; one line.
std::string progress_line(const Looks& looks, const ProgressView& progress);

// Many hosts move the same things: up to kLinesMax lines, those of a thing added up when there are more.
inline constexpr size_t kLinesMax = 8;
std::vector<ProgressView> summed(const std::vector<ProgressView>& progress);

class StatusBlock {
 public:
  explicit StatusBlock(const Looks& looks) : looks_(looks) {}
  // Lines of the log: above the block, which is drawn again below them.
  std::string scroll(const std::string& text);
  // What stands in the block now. `headline`: "" = none.
  std::string show(const std::string& headline, const std::vector<ProgressView>& progress);
  // The block goes; what follows is written where it stood.
  std::string clear();

 private:
  std::string erase() const;
  const Looks& looks_;
  std::string block_;
  size_t lines_ = 0;
  std::string headline_;
  std::map<std::string, bool> said_;  // thing -> whether its end was
};

}  // namespace trainyard::cli
