#include "agent/files/key_paths.hpp"

#include <map>

#include "base/text.hpp"

namespace trainyard::agent {
namespace {

// Limits of file systems for one name and for one path.
constexpr size_t kNameBytesMax = 255;
constexpr size_t kPathBytesMax = 3000;

}  // namespace

std::string in_quotes(std::string_view key) { return "'" + shorten(to_utf8(key), 200) + "'"; }

Result<std::string> path_of_key(const std::string& key, std::string_view rest) {
  std::string path;
  for (const auto part : split(rest, '/')) {
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
  if (path.empty()) return invalid("the key " + in_quotes(key) + " has no name for a file");
  if (path.size() > kPathBytesMax)
    return invalid("the key " + in_quotes(key) + " is too long for a path");
  return path;
}

std::string_view below_prefix(const std::string& key, const std::string& prefix) {
  const std::string_view text = key;
  if (prefix.empty() || prefix.ends_with('/')) return text.substr(prefix.size());
  if (text.size() > prefix.size() && text[prefix.size()] == '/')
    return text.substr(prefix.size() + 1);
  const size_t slash = prefix.rfind('/');
  return slash == std::string::npos ? text : text.substr(slash + 1);
}

Result<void> check_paths(const std::vector<Download>& downloads) {
  std::map<std::string_view, const Download*> files;
  for (const auto& download : downloads) {
    const auto [other, added] = files.emplace(download.path, &download);
    if (!added) {
      return invalid("the keys " + in_quotes(other->second->key) + " and " +
                     in_quotes(download.key) + " would be the same file");
    }
  }
  for (const auto& download : downloads) {
    for (size_t slash = download.path.find('/'); slash != std::string::npos;
         slash = download.path.find('/', slash + 1)) {
      const auto other = files.find(std::string_view(download.path).substr(0, slash));
      if (other != files.end()) {
        return invalid("the key " + in_quotes(other->second->key) + " would be a file where " +
                       in_quotes(download.key) + " needs a directory");
      }
    }
  }
  return {};
}

}  // namespace trainyard::agent
