// Finds and fetches images, through skopeo and this machine's files: their digests, layers and
// documents. Private to this module; image.hpp lists the sources and the errors.
//
// Threads: callable from anywhere.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "containers/image.hpp"
#include "containers/oci_image.hpp"
#include "os/files.hpp"

namespace trainyard::containers {

// The directories of logins, next to the shared images directory.
inline std::string private_images(const std::string& images_directory) {
  return images_directory + ".private";
}

// A file in the form of containers-auth.json(5) for the programs that query registries; removed
// with the object. Its directory is made when absent.
class LoginFile {
 public:
  static Result<LoginFile> write(const std::string& directory, const ImageRights::Login& login);
  LoginFile(LoginFile&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  LoginFile& operator=(LoginFile&&) = delete;
  ~LoginFile();
  const std::string& path() const { return path_; }

 private:
  explicit LoginFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A source and the login for it. `login_file`: "" = the login of this machine's own files.
struct ImageSource {
  std::string name;
  std::string login_file = {};
};

// The layout of "oci:PATH:TAG" below one of the directories, opened beneath it, and the source that
// names it while it is open. Nothing, if it lies elsewhere. Errors: invalid: a symbolic link is on
// the path.
struct HeldLayout {
  os::File directory;
  std::string source;
};
Result<std::optional<HeldLayout>> hold_layout(const std::string& source,
                                              const std::vector<std::string>& directories);

// Errors: invalid, for an unknown kind of source.
Result<void> check_source(const std::string& source);

// "sha256:" and 64 hex digits.
std::string sha256(std::string_view bytes);

// Returns the digest by which the image is stored here, without fetching it.
Result<std::string> digest_of(const ImageSource& source);

// Returns its layers, the lowest first, in the source's form; empty where only fetching tells.
Result<std::vector<ImageReference>> layers_of(const ImageSource& source);

// An OCI layout with one image, called "image"; its blobs lie in BLOBS/sha256/, where present ones
// are not fetched again. `watch` as Command::watch.
struct LayoutPaths {
  std::string directory;
  std::string blobs;
};
Result<void> fetch(const ImageSource& source, const LayoutPaths& to,
                   const std::function<bool()>& watch);
// Bytes that fetch() has written so far to incomplete blobs.
uint64_t bytes_on_the_way(const LayoutPaths& to);

// Returns the same image by its digest, so that what is fetched is what has that digest, however
// often the registry's tag moves. Other sources than registries are returned as they are.
ImageSource pinned_to(ImageSource source, const std::string& digest);

// The documents of the fetched image.
struct DescribedImage {
  ImageConfig config;
  std::vector<ImageReference> layers;
};
Result<DescribedImage> describe(const LayoutPaths& layout);
// Checks that an image was fetched whose digest is `digest`: a layout may change meanwhile. For
// registries, pinned_to() does. Errors: corrupt.
Result<void> check_fetched(const ImageSource& source, const std::string& digest,
                           const DescribedImage& image);

// Returns the error with its proper kind, and with the image in its message.
Error explained(Error error, const std::string& source);

}  // namespace trainyard::containers
