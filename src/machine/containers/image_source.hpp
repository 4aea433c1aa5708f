// Finds and fetches images, with their digests, layers and documents, through skopeo and files of
// this machine. Private to this module; image.hpp lists the sources and the errors.
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

// Returns the parent of the images directories of logins, next to the shared images directory.
inline std::string private_images(const std::string& images_directory) {
  return images_directory + ".private";
}

// LoginFile is a file in the form of containers-auth.json(5), for programs that query registries.
// Its directory is made if it is absent; the destructor removes the file.
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

// A source and the file with its login. `login_file` "": the login in the files of this machine.
struct ImageSource {
  std::string name;
  std::string login_file = {};
};

// An OCI layout that was opened beneath a directory, and the source that names it while it is open.
struct OpenedLayout {
  os::File directory;
  std::string source;
};
// Opens the layout of "oci:PATH:TAG" beneath one of `directories`. Returns nullopt if it is
// elsewhere. Errors: invalid, if a symbolic link is on the path.
Result<std::optional<OpenedLayout>> open_layout(const std::string& source,
                                                const std::vector<std::string>& directories);

// Checks the form of a source. Errors: invalid, for an unknown kind of source.
Result<void> check_source(const std::string& source);

// Returns "sha256:" and 64 hex digits.
std::string sha256(std::string_view bytes);

// Returns the digest under which the image is stored here, without fetching it.
Result<std::string> digest_of(const ImageSource& source);

// Returns its layers, the lowest first, in the form of the source; empty if they are unknown before
// the image is fetched.
Result<std::vector<ImageReference>> layers_of(const ImageSource& source);

// An OCI layout with one image, with the tag "image". Its blobs are in BLOBS/sha256/.
struct LayoutPaths {
  std::string directory;
  std::string blobs;
};
// Fetches an image into a layout. Existing blobs are not fetched again. `watch`: as Command::watch.
Result<void> fetch(const ImageSource& source, const LayoutPaths& to,
                   const std::function<bool()>& watch);
// Returns the bytes that fetch() has written so far to incomplete blobs.
uint64_t incomplete_blob_bytes(const LayoutPaths& to);

// Returns the source with the digest instead of a tag, so that the image with this digest is
// fetched even if the tag changes. Sources other than registries are returned unchanged.
ImageSource pinned_to(ImageSource source, const std::string& digest);

// The documents of the fetched image.
struct DescribedImage {
  ImageConfig config;
  std::vector<ImageReference> layers;
};
Result<DescribedImage> describe(const LayoutPaths& layout);
// Checks that the fetched image has the digest `digest`, because a layout may change meanwhile.
// (For registries, pinned_to() ensures it.) Errors: corrupt.
Result<void> check_fetched(const ImageSource& source, const std::string& digest,
                           const DescribedImage& image);

// Returns the error with the correct kind, and with the image in its message.
Error explained(Error error, const std::string& source);

}  // namespace trainyard::containers
