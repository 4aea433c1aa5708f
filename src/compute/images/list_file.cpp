#include "images/list_file.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "images/image_record.hpp"

namespace trainyard::images {
namespace {

Result<void> check_path(std::string_view path) {
  if (path.empty() || path.size() > kPathBytesMax || path.find('\0') != std::string_view::npos)
    return invalid("invalid path '" + shorten(path, 64) + "'");
  if (path.front() == '/')
    return invalid("path '" + shorten(path, 64) + "' must be relative to the channel");
  for (const std::string_view part : split(path, '/'))
    if (part == "..")
      return invalid("path '" + shorten(path, 64) + "' leaves the channel's folder");
  return ok();
}

Result<ListedImage> parse_line(std::string_view line) {
  const auto fields = split(line, '\t');
  if (fields.size() < 3)
    return invalid("a line needs number, label and path, separated by tabs; this one has " +
                   std::to_string(fields.size()) + (fields.size() == 1 ? " field" : " fields"));
  if (fields.size() - 2 > kLabelsMax)
    return exhausted("more than " + std::to_string(kLabelsMax) + " labels");
  TRY(parse_double(trim(fields.front())).in("number"));
  ListedImage image;
  for (size_t i = 1; i + 1 < fields.size(); ++i)
    image.labels.push_back(float(TRY(parse_double(trim(fields[i])).in("label"))));
  TRY(check_path(fields.back()));
  image.path = fields.back();
  return image;
}

}  // namespace

Result<std::vector<ListedImage>> parse_list(std::string_view text) {
  std::vector<ListedImage> images;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    images.push_back(TRY(parse_line(line).in("line " + std::to_string(number))));
  }
  return images;
}

}  // namespace trainyard::images
