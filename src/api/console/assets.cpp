#include "console/assets.hpp"

#include <utility>

#include "os/files.hpp"

namespace trainyard::api::console {
namespace {

// The content types of served files; other files are not served.
constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

std::string_view type_of(std::string_view name) {
  for (const auto& [ending, type] : kTypes)
    if (name.ends_with(ending)) return type;
  return "";
}

}  // namespace

Result<Assets> Assets::read(const std::string& directory) {
  std::map<std::string, Asset, std::less<>> files;
  size_t left = kBytesMax;
  const auto take = [&](const std::string& path) -> Result<void> {
    const std::string_view type = type_of(path);
    if (type.empty()) return {};
    std::string bytes = TRY(os::read_file(directory + "/" + path, left).in("reading the console"));
    left -= bytes.size();
    bytes.shrink_to_fit();
    files[path] = {std::move(bytes), type};
    return {};
  };
  TRY(take("index.html"));
  TRY(take("sign-in.html"));
  for (const std::string folder : {"assets", "sign-in"})
    for (const std::string& name : TRY(os::list_directory(directory + "/" + folder)))
      TRY(take(folder + "/" + name));
  return Assets(std::move(files));
}

const Asset* Assets::find(std::string_view path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

}  // namespace trainyard::api::console
