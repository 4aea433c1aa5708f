#include "host/image.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/json.hpp"
#include "base/text.hpp"
#include "host/files.hpp"
#include "host/process.hpp"

namespace trainyard::host {
namespace {

// A large image on a slow disk. More is a disk that hangs.
constexpr Duration kUnpackMax = 30min;
constexpr Duration kAskMax = 1min;
constexpr size_t kAccountsBytesMax = 4 << 20;  // of /etc/passwd, /etc/group
// An index may name an index; deeper than this nobody means it.
constexpr int kIndexDepthMax = 4;
constexpr std::string_view kOciPrefix = "oci:";
constexpr std::string_view kStoragePrefix = "containers-storage:";

std::string sha256(std::string_view bytes) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), hash, &length, EVP_sha256(), nullptr) != 1) return "";
  return "sha256:" + to_hex({reinterpret_cast<const char*>(hash), length});
}

std::string machine_architecture() {
  utsname name;
  const std::string machine = ::uname(&name) == 0 ? name.machine : "";
  return machine == "x86_64" ? "amd64" : machine == "aarch64" ? "arm64" : machine;
}

struct OciPlace {
  std::string layout, tag;
};

// "PATH:TAG"; a tag has no '/', so a ':' before the last '/' belongs to the path.
OciPlace split_oci(std::string_view place) {
  const size_t colon = place.rfind(':');
  const size_t slash = place.rfind('/');
  if (colon == std::string_view::npos || (slash != std::string_view::npos && colon < slash))
    return {std::string(place), ""};
  return {std::string(place.substr(0, colon)), std::string(place.substr(colon + 1))};
}

// A document of a layout, checked against its own name.
Result<std::string> read_blob(const std::string& layout, const std::string& digest) {
  std::string bytes = TRY(read_file(layout + "/blobs/sha256/" + digest.substr(7), kImageDocumentBytesMax));
  if (sha256(bytes) != digest) return corrupt("the image's blob " + digest + " is not what its digest says");
  return bytes;
}

struct Described {
  std::string digest;  // of the manifest
  ImageConfig config;
};

// Follows tag -> (index ->) manifest -> config.
Result<Described> describe_layout(const std::string& layout, const std::string& tag) {
  const std::string index =
      TRY(read_file(layout + "/index.json", kImageDocumentBytesMax).in("reading the OCI layout " + layout));
  ImageReference at = TRY(find_in_index(index, tag).in("the OCI layout " + layout));
  for (int depth = 0; depth < kIndexDepthMax; depth++) {
    const std::string manifest = TRY(read_blob(layout, at.digest));
    const auto document = TRY(read_manifest(manifest, machine_architecture()));
    if (document.is_index) {
      at = document.next;
      continue;
    }
    return Described{at.digest, TRY(read_image_config(TRY(read_blob(layout, document.next.digest))))};
  }
  return invalid("the image's indexes lie too deep in each other");
}

// A file inside a root that somebody else filled: its links are followed as they would be inside.
std::string read_inside(const std::string& root, const char* path) {
  const File folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return "";
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const File file(int(::syscall(SYS_openat2, folder.descriptor(), path, &how, sizeof how)));
  struct stat status;
  if (!file || ::fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  auto text = read_file("/proc/self/fd/" + std::to_string(file.descriptor()), kAccountsBytesMax);
  return text ? std::move(*text) : "";
}

Error explained(Error error, const std::string& source) {
  const auto says = [&](const char* part) { return error.message.find(part) != std::string::npos; };
  if (says("no descriptor found") || says("does not resolve to an image") ||
      says("identifier is not an image"))
    error.kind = Kind::not_found;
  else if (says("No space left") || says("no space left"))
    error.kind = Kind::exhausted;
  return std::move(error).in("the image " + source);
}

Result<void> need(const char* program) {
  if (on_path(program)) return ok();
  return not_found(std::string("images need '") + program + "' on PATH: install the package " + program);
}

// What is written is on the disk before it gets its name.
Result<void> sync_file_system(const std::string& path) {
  const File directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::syncfs(directory.descriptor()) != 0) return from_errno("syncing " + path);
  return ok();
}

Json to_json(const UnpackedImage& image) {
  return {{"digest", image.digest},
          {"entrypoint", image.config.entrypoint},
          {"command", image.config.command},
          {"environment", image.config.environment},
          {"working_directory", image.config.working_directory},
          {"user", image.config.user},
          {"user_id", image.user_id},
          {"group_id", image.group_id}};
}

Result<UnpackedImage> load(const std::string& directory) {
  const Json json = TRY(parse_json(TRY(read_file(directory + "/image.json", kImageDocumentBytesMax))));
  UnpackedImage image;
  image.root = directory + "/root";
  image.digest = TRY(string_at(json, "digest"));
  image.config.working_directory = TRY(string_at(json, "working_directory"));
  image.config.user = TRY(string_at(json, "user"));
  image.user_id = uint32_t(TRY(int_at(json, "user_id")));
  image.group_id = uint32_t(TRY(int_at(json, "group_id")));
  try {
    image.config.entrypoint = json.at("entrypoint").get<std::vector<std::string>>();
    image.config.command = json.at("command").get<std::vector<std::string>>();
    image.config.environment = json.at("environment").get<std::map<std::string, std::string>>();
  } catch (const Json::exception& error) {
    return corrupt(error.what());
  }
  return image;
}

// Into `work`, an empty directory: work/layout when it must be fetched, work/image as it will be.
Result<void> unpack_into(const std::string& source, const std::string& work) {
  TRY(need("umoci"));
  TRY(need("skopeo"));
  // Through skopeo from wherever it is: it picks this machine's image of several, and understands Docker's
  // formats.
  TRY(run_or_fail(
      {{"skopeo", "--insecure-policy", "copy", "--quiet", source, "oci:" + work + "/layout:image"},
       {},
       "",
       "",
       kUnpackMax}));
  UnpackedImage image;
  const auto described = TRY(describe_layout(work + "/layout", "image"));
  image.digest = described.digest;
  image.config = described.config;
  TRY(make_directories(work + "/image", 0755));
  image.root = work + "/image/root";
  TRY(run_or_fail(
      {{"umoci", "raw", "unpack", "--image", work + "/layout:image", image.root}, {}, "", "", kUnpackMax}));
  const auto ids = TRY(find_user(image.config.user, read_inside(image.root, "etc/passwd"),
                                 read_inside(image.root, "etc/group")));
  image.user_id = ids.user;
  image.group_id = ids.group;
  return write_file(work + "/image/image.json", dump(to_json(image)), 0600);
}

// The digest by which an image is known here, without unpacking it.
Result<std::string> digest_of(const std::string& source) {
  if (source.starts_with(kOciPrefix)) {
    const auto place = split_oci(std::string_view(source).substr(kOciPrefix.size()));
    const std::string index = TRY(read_file(place.layout + "/index.json", kImageDocumentBytesMax));
    return TRY(find_in_index(index, place.tag)).digest;
  }
  TRY(need("skopeo"));
  return sha256(TRY(run_or_fail({{"skopeo", "inspect", "--raw", source}, {}, "", "", kAskMax})));
}

}  // namespace

Result<UnpackedImage> unpack_image(const std::string& source, const std::string& images_directory) {
  if (!source.starts_with(kOciPrefix) && !source.starts_with(kStoragePrefix))
    return invalid("'" + shorten(source, 100) +
                   "' is not an image: it must start with 'oci:' or 'containers-storage:'");
  if (source.find('\0') != std::string::npos) return invalid("the image's name has a zero byte");
  auto digest = digest_of(source);
  if (!digest) return explained(std::move(digest).error(), source);
  const std::string name = "sha256-" + digest->substr(7);
  const std::string directory = images_directory + "/" + name;
  if (exists(directory + "/image.json")) return load(directory).in("the unpacked image " + directory);

  TRY(make_directories(images_directory, 0700));
  const auto lock = TRY(FileLock::take_within(images_directory + "/" + name + ".lock", kUnpackMax));
  if (exists(directory + "/image.json")) return load(directory).in("the unpacked image " + directory);
  const std::string work = images_directory + "/" + name + ".unpacking";
  TRY(remove_all(work));
  TRY(make_directories(work, 0700));
  auto unpacked = unpack_into(source, work);
  if (!unpacked) {
    (void)remove_all(work);
    return explained(std::move(unpacked).error(), source);
  }
  TRY(sync_file_system(work));
  if (::rename((work + "/image").c_str(), directory.c_str()) != 0)
    return from_errno("renaming to " + directory);
  TRY(sync_directory(images_directory));
  TRY(remove_all(work));
  return load(directory).in("the unpacked image " + directory);
}

}  // namespace trainyard::host
