#include "agent/sources.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "agent/files/tree.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "contract/contract.hpp"
#include "objects/checksum.hpp"
#include "os/files.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kUsualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr size_t kCopyBytes = 256 << 10;

// The SDK writes values as JSON, other clients plainly.
std::string hyperparameter(const domain::JobSpec& spec, const std::string& name) {
  const auto found = spec.hyperparameters.find(name);
  if (found == spec.hyperparameters.end()) return "";
  const auto value = parse_json(found->second);
  return value && value->is_string() ? value->get<std::string>() : found->second;
}

Result<void> write_all(const os::File& file, std::span<const char> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.descriptor(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return from_errno("writing " + path);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Result<void> fill_file(const Tree& directory, const std::string& path, unsigned mode,
                       const Source& content, const Interruption& interruption) {
  const auto file = TRY(directory.create_file(path, os::IfThere::truncate, mode | 0600));
  std::vector<char> buffer(kCopyBytes);
  for (;;) {
    TRY(interruption.check());
    const size_t got = TRY(content(buffer));
    if (got == 0) break;
    TRY(write_all(file, {buffer.data(), got}, path));
  }
  ::fchmod(file.descriptor(), mode | 0600);
  return {};
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// Makes the folders of a name. Does not follow links: an earlier entry of the archive may be a link
// on the path of a later one.
Result<void> make_folders(const Tree& directory, const std::string& name) {
  auto made = directory.make(name);
  if (made) return {};
  if (made.error().kind != Kind::invalid && made.error().kind != Kind::not_found)
    return made.error();
  return corrupt("'" + shorten(name, 200) + "' leads through a link or file");
}

}  // namespace

bool image_has_program(const std::string& root, const std::string& path,
                       const std::string& program) {
  const os::File folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return false;
  const std::string_view folders =
      path.empty() ? std::string_view(kUsualPath) : std::string_view(path);
  for (const auto part : split(folders, ':')) {
    if (part.empty()) continue;
    struct open_how how {};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    const std::string name = std::string(part) + "/" + program;
    const os::File file(static_cast<int>(
        ::syscall(SYS_openat2, folder.descriptor(), name.c_str(), &how, sizeof how)));
    struct stat status;
    if (file && ::fstat(file.descriptor(), &status) == 0 && S_ISREG(status.st_mode) &&
        (status.st_mode & 0111) != 0)
      return true;
  }
  return false;
}

bool runs_script(const domain::JobSpec& spec, const domain::Image& image, const ReadyImage& ready,
                 bool image_has_train) {
  if (!spec.entrypoint.empty() || !spec.arguments.empty()) return false;
  const bool named = !hyperparameter(spec, "sagemaker_program").empty() ||
                     !contract::variable_of(spec.environment, "SAGEMAKER_PROGRAM").empty() ||
                     !contract::variable_of(ready.environment, "SAGEMAKER_PROGRAM").empty();
  if (!named) return false;
  return image.kind == domain::Image::Kind::machine ? ready.entrypoint.empty() : !image_has_train;
}

std::string source_archive(const domain::JobSpec& spec) {
  std::string place = hyperparameter(spec, "sagemaker_submit_directory");
  if (place.empty()) place = contract::variable_of(spec.environment, "SAGEMAKER_SUBMIT_DIRECTORY");
  if (place.starts_with("s3://")) return place;
  const std::string data = std::string(contract::kBase) + "/input/data/";
  return place.starts_with(data) ? place.substr(contract::kBase.size() + 1) : "";
}

Result<void> unpack_sources(Source bytes, const Tree& directory, const Interruption& interruption) {
  const auto reader = TRY(read_tar(std::move(bytes), Compression::gzip));
  uint64_t all_bytes = 0;
  size_t files = 0;
  for (;;) {
    const auto entry = TRY(reader->next());
    if (!entry) return {};
    if (++files > kSourceFilesMax)
      return exhausted("unpacking the archive: more than " + std::to_string(kSourceFilesMax) +
                       " files");
    if (entry->type == TarEntry::Type::directory) {
      TRY(make_folders(directory, entry->name));
      continue;
    }
    TRY(make_folders(directory, folder_of(entry->name)));
    if (entry->type == TarEntry::Type::link) {
      TRY(directory.make_link(entry->name, entry->link_target));
      continue;
    }
    all_bytes += entry->bytes;
    if (all_bytes > kSourceBytesMax)
      return exhausted("unpacking the archive: more than " + human_bytes(kSourceBytesMax));
    TRY(fill_file(
        directory, entry->name, entry->mode & 0777,
        [&](std::span<char> buffer) { return reader->read(buffer); }, interruption));
  }
}

Result<void> copy_image_code(const std::string& root, const Tree& directory,
                             const Interruption& interruption) {
  const std::string code = std::string(contract::kBase.substr(1)) + "/code";
  const auto tree = TRY(Tree::open(root));
  return tree.walk(code, [&](const Tree::Entry& entry) -> Result<void> {
    if (S_ISDIR(entry.status.st_mode)) return make_folders(directory, entry.path);
    if (S_ISLNK(entry.status.st_mode)) return directory.make_link(entry.path, entry.link_target);
    if (!S_ISREG(entry.status.st_mode)) return {};
    const auto file = TRY(tree.open_file(code + "/" + entry.path));
    return fill_file(
        directory, entry.path, entry.status.st_mode & 0777,
        [&](std::span<char> buffer) -> Result<size_t> {
          for (;;) {
            const ssize_t got = ::read(file.descriptor(), buffer.data(), buffer.size());
            if (got >= 0) return static_cast<size_t>(got);
            if (errno != EINTR) return from_errno("reading " + entry.path);
          }
        },
        interruption);
  });
}

std::string gang_secret(const domain::AttemptId& attempt, const std::string& token) {
  return to_hex(
      objects::checksum_of("sha256", "trainyard gang secret\n" + attempt.text() + "\n" + token));
}

}  // namespace trainyard::agent
