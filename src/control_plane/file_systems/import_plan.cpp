#include "file_systems/import_plan.hpp"

#include <algorithm>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "file_systems/check.hpp"

namespace trainyard::file_systems {
namespace {

// Limits of Linux for one name and for one path.
constexpr size_t kNameBytesMax = 255, kPathOfKeyBytesMax = 3'000;

std::string in_quotes(std::string_view key) { return "'" + shorten(to_utf8(key), 120) + "'"; }

bool is_wanted(const std::vector<std::string>& paths, std::string_view path) {
  return paths.empty() ||
         std::ranges::any_of(paths, [&](const auto& each) { return contains(each, path); });
}

bool is_up_to_date(const FileFacts& file, const objects::ObjectInfo& object, ImportMode mode) {
  if (mode == ImportMode::added) return true;
  if (file.modified == object.modified && file.bytes == object.bytes) return true;
  return file.modified > object.modified;
}

// Moves fetches that conflict with others to the failures.
void drop_conflicts(ImportPlan& plan, std::string_view directory) {
  std::map<std::string, size_t, std::less<>> files;  // path -> index of the first
  std::vector<bool> dropped(plan.fetches.size());
  const auto fail = [&](size_t index, const std::string& why) {
    dropped[index] = true;
    plan.failures.push_back({plan.fetches[index].path, "S3ObjectPathNotPosixCompliant", why});
  };
  for (size_t i = 0; i < plan.fetches.size(); ++i) {
    if (plan.fetches[i].directory) continue;
    const auto [other, added] = files.emplace(plan.fetches[i].path, i);
    if (!added)
      fail(i, "the keys " + in_quotes(plan.fetches[other->second].key) + " and " +
                  in_quotes(plan.fetches[i].key) + " would be the same file");
  }
  for (size_t i = 0; i < plan.fetches.size(); ++i) {
    const std::string& path = plan.fetches[i].path;
    if (dropped[i]) continue;
    // The path of a directory must not be a file, either.
    for (size_t end = path.find('/', directory.size() + 1);; end = path.find('/', end + 1)) {
      const bool whole = end == std::string::npos;
      if (whole && !plan.fetches[i].directory) break;
      const auto other = files.find(std::string_view(path).substr(0, end));
      if (other != files.end() && other->second != i) {
        fail(i, "the key " + in_quotes(plan.fetches[other->second].key) +
                    " is a file where the key " + in_quotes(plan.fetches[i].key) +
                    " needs a directory");
        break;
      }
      if (whole) break;
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < plan.fetches.size(); ++i)
    if (!dropped[i]) {
      if (kept != i) plan.fetches[kept] = std::move(plan.fetches[i]);
      ++kept;
    }
  plan.fetches.resize(kept);
}

}  // namespace

Result<std::string> path_of_key(std::string_view key, std::string_view prefix,
                                std::string_view directory) {
  if (!key.starts_with(prefix)) return invalid("the key " + in_quotes(key) + " is not linked");
  std::string path(directory);
  for (const auto part : split(key.substr(prefix.size()), '/')) {
    if (part.empty()) continue;
    if (part == ".." || part == ".")
      return invalid("the key " + in_quotes(key) + " contains '" + std::string(part) +
                     "', which would lead out of its directory");
    if (part.size() > kNameBytesMax)
      return invalid("the key " + in_quotes(key) +
                     " has a part of more than 255 bytes, too long for a file's name");
    if (part.find('\0') != std::string_view::npos)
      return invalid("the key " + in_quotes(key) + " contains a NUL byte");
    if (!path.empty()) path += '/';
    path += part;
  }
  if (path.size() == directory.size())
    return invalid("the key " + in_quotes(key) + " has no name for a file");
  if (path.size() > kPathOfKeyBytesMax)
    return invalid("the key " + in_quotes(key) + " is too long for a path");
  return path;
}

ImportPlan plan_import(const std::vector<objects::ObjectInfo>& listed, std::string_view prefix,
                       std::string_view directory, const std::vector<std::string>& paths,
                       const Files& present, ImportMode mode) {
  ImportPlan plan;
  for (const auto& object : listed) {
    if (object.key == prefix) continue;  // the linked directory itself
    auto path = path_of_key(object.key, prefix, directory);
    if (!path) {
      if (paths.empty())
        plan.failures.push_back(
            {to_utf8(
                 std::string_view(object.key).substr(std::min(prefix.size(), object.key.size()))),
             "S3ObjectPathNotPosixCompliant", path.error().message});
      continue;
    }
    if (!is_wanted(paths, *path)) continue;
    const bool is_directory = object.key.ends_with('/');
    plan.fetches.push_back({object.key, *std::move(path), is_directory ? 0 : object.bytes,
                            object.modified, is_directory});
    if (!is_directory) plan.bytes = saturating_add(plan.bytes, object.bytes);
  }
  drop_conflicts(plan, directory);
  std::erase_if(plan.fetches, [&](const Fetch& fetch) {
    const auto file = present.find(fetch.path);
    if (fetch.directory || file == present.end()) return false;
    objects::ObjectInfo object;
    object.bytes = fetch.bytes;
    object.modified = fetch.modified;
    const bool done = is_up_to_date(file->second, object, mode);
    if (done) ++plan.present;
    return done;
  });
  return plan;
}

std::string summary_of(const std::vector<FileFailure>& failures) {
  if (failures.empty()) return "";
  std::string text = failures.front().why;
  if (failures.size() > 1) text += " (and " + std::to_string(failures.size() - 1) + " more)";
  return text;
}

std::string report_line(const FileFailure& failure) {
  std::string path;
  for (const char c : failure.path) {
    // Each file has one line, so line ends in names are encoded.
    if (c == '\n' || c == '\r')
      path += ' ';
    else
      path += c == '"' ? std::string("\"\"") : std::string(1, c);
  }
  const bool formula = !failure.path.empty() &&
                       std::string_view("@+-=").find(failure.path[0]) != std::string_view::npos;
  if (formula)
    path = "\"\"\"" + path + "\"\"\"";
  else if (failure.path.find_first_of("\",") != std::string::npos)
    path = "\"" + path + "\"";
  return path + ",failed," + failure.code + "\n";
}

}  // namespace trainyard::file_systems
