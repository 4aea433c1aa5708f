#include "config/password_file.hpp"

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::config {
namespace {

constexpr size_t kPasswordBytesMax = 4096;

}  // namespace

Result<std::string> read_password_file(const Table& table, const std::string& directory,
                                       const std::string& file, const char* key) {
  const std::string path = file.starts_with('/') ? file : directory + file;
  std::string password(trim(TRY(os::read_file(path, kPasswordBytesMax).in(table.name(key)))));
  if (password.empty())
    return invalid(table.name(key) + ": the file " + format_text(path) +
                   " is empty: it must have one line, the secret");
  return password;
}

}  // namespace trainyard::config
