#include "boosting/training/checkpoints.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::boosting {
namespace {

constexpr std::string_view kPrefix = "xgboost-checkpoint.";
constexpr std::string_view kUnfinished = ".sagemaker-ignore";

std::optional<int64_t> round_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return {};
  const auto digits = name.substr(kPrefix.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) return {};
  const auto round = parse_int(digits);
  return round && *round < INT32_MAX ? std::optional(*round) : std::nullopt;
}

bool is_being_uploaded(const std::string& path) {
  return os::exists(path + ".sagemaker-uploading") && !os::exists(path + ".sagemaker-uploaded");
}

}  // namespace

Result<std::vector<Checkpoint>> Checkpoints::list() const {
  std::vector<Checkpoint> found;
  if (directory_.empty() || !os::exists(directory_)) return found;
  for (const std::string& name : TRY(os::list_directory(directory_)))
    if (const auto round = round_of(name)) found.push_back({*round, directory_ + "/" + name});
  std::ranges::sort(found, std::ranges::greater(), &Checkpoint::round);
  return found;
}

Result<void> Checkpoints::save(int64_t round, std::string_view model) {
  if (directory_.empty()) return ok();
  TRY(os::make_directories(directory_));
  const std::string path = directory_ + "/" + std::string(kPrefix) + std::to_string(round);
  const std::string unfinished = path + std::string(kUnfinished);
  TRY(os::write_file(unfinished, model));
  if (std::rename(unfinished.c_str(), path.c_str()) != 0)
    return from_errno("renaming " + unfinished);
  const auto all = TRY(list());
  for (size_t i = kCheckpointsKept; i < all.size(); ++i)
    if (!is_being_uploaded(all[i].path)) TRY(os::remove_all(all[i].path));
  return ok();
}

}  // namespace trainyard::boosting
