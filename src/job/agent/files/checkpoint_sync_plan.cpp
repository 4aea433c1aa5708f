#include "agent/files/checkpoint_sync_plan.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/text.hpp"

namespace trainyard::agent {
namespace {

// The parent directories of a path: "a", "a/b" of "a/b/c".
template <class Visit>
void each_parent(const std::string& path, Visit visit) {
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
    visit(path.substr(0, slash));
}

}  // namespace

bool is_left_out(std::string_view path) {
  for (const auto part : split(path, '/')) {
    for (const auto mark : {kUploadingMark, kUploadedMark, kIgnoreMark})
      if (part.ends_with(mark)) return true;
  }
  return false;
}

bool is_event_file(std::string_view path) {
  return path.substr(path.rfind('/') + 1).find("tfevents") != std::string_view::npos;
}

SyncPlan plan_sync(const DirectoryScan& before, const DirectoryScan& now,
                   const std::map<std::string, Stamp>& stored, const SyncRules& rules, bool last) {
  SyncPlan plan;
  for (const auto& [path, stamp] : now.files) {
    const auto there = stored.find(path);
    if (there != stored.end() && there->second == stamp) continue;
    const auto earlier = before.files.find(path);
    const bool put_in_place = stamp.changed > stamp.modified;
    const bool unchanged = earlier != before.files.end() && earlier->second == stamp;
    const bool grows = rules.event_files && is_event_file(path);
    if (last || put_in_place || unchanged || grows) {
      plan.upload.push_back(path);
    } else {
      ++plan.waiting;
    }
  }
  std::sort(
      plan.upload.begin(), plan.upload.end(), [&](const std::string& a, const std::string& b) {
        return std::tuple(now.files.at(a).changed, a) < std::tuple(now.files.at(b).changed, b);
      });
  if (!rules.deletions || !now.whole) return plan;
  const std::set<std::string> uploads(plan.upload.begin(), plan.upload.end());
  std::set<std::string> directories;
  for (const auto& path : uploads)
    each_parent(path, [&](std::string parent) { directories.insert(std::move(parent)); });
  for (const auto& [path, stamp] : stored) {
    if (now.files.contains(path) || (!last && before.files.contains(path))) continue;
    bool in_the_way = directories.contains(path);
    each_parent(path, [&](const std::string& parent) { in_the_way |= uploads.contains(parent); });
    (in_the_way ? plan.remove_first : plan.remove).push_back(path);
  }
  return plan;
}

}  // namespace trainyard::agent
