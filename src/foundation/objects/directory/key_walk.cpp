#include "objects/directory/key_walk.hpp"

#include <algorithm>

#include "objects/directory/key_path.hpp"

namespace trainyard::objects {

Result<void> KeyWalk::descend(std::string path, std::string prefix) {
  auto names = TRY(names_.read(path));
  levels_.push_back({std::move(path), std::move(prefix), std::move(names), 0});
  return ok();
}

Result<std::optional<std::string>> KeyWalk::at_or_after(const std::string& bound,
                                                        const RollsUp& rolls_up) {
  if (levels_.empty()) TRY(descend(root_, ""));
  // Leaves directories whose keys are all less than the bound.
  while (levels_.size() > 1 && levels_.back().prefix < bound &&
         !bound.starts_with(levels_.back().prefix))
    levels_.pop_back();
  for (;;) {
    Level& level = levels_.back();
    const std::string_view rest =
        bound.starts_with(level.prefix) ? std::string_view(bound).substr(level.prefix.size()) : "";
    level.at = std::max(level.at, level.names->position(rest));
    if (level.at == level.names->size()) {
      if (levels_.size() == 1) return std::optional<std::string>();
      levels_.pop_back();
      ++levels_.back().at;
      continue;
    }
    const std::string_view name = (*level.names)[level.at];
    std::string prefix = level.prefix + std::string(name);
    if (!is_inner(name)) return std::optional(std::move(prefix));
    std::string path = level.path + "/" + file_name_of(name);
    if (prefix >= bound && rolls_up(prefix)) {
      if (TRY(holds_object(path))) return std::optional(std::move(prefix));
      ++level.at;
      continue;
    }
    TRY(descend(std::move(path), std::move(prefix)));
  }
}

}  // namespace trainyard::objects
