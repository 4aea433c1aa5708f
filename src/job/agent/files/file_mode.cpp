#include "agent/files/file_mode.hpp"

namespace trainyard::agent {

FileModeChoice choose_file_mode(const FileModeFacts& facts) {
  if (facts.copies_wanted || facts.holds_sources) return {};
  if (facts.why_no_mount.empty()) return {true, {}};
  return {false, "is copied before the script starts: " + facts.why_no_mount};
}

BlocksKept choose_cache(uint64_t needed, uint64_t pinned, uint64_t volume_free) {
  if (pinned >= needed) return BlocksKept::on_machine;
  return needed <= volume_free ? BlocksKept::on_volume : BlocksKept::nowhere;
}

}  // namespace trainyard::agent
