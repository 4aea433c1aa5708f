#include "objects/directory/format.hpp"

#include <string_view>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::objects {
namespace {

constexpr std::string_view kFormat = "trainyard objects 2\n";
constexpr std::string_view kFormatBefore =
    "trainyard objects 1\n";  // has no objects that are lists of parts
constexpr size_t kFormatBytesMax = 4096;

}  // namespace

Result<void> check_format(const std::string& path) {
  const std::string format_path = path + "/format";
  if (!os::exists(format_path)) return os::write_file_durably(format_path, kFormat);
  const std::string format = TRY(os::read_file(format_path, kFormatBytesMax));
  if (format == kFormat) return ok();
  if (format == kFormatBefore) return os::write_file_durably(format_path, kFormat);
  return invalid("unsupported format '" + shorten(trim(format), 80) + "', this program writes '" +
                 std::string(trim(kFormat)) + "'; a newer version wrote it");
}

}  // namespace trainyard::objects
