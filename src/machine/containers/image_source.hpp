// Where images come from, through skopeo and this machine's files: what an image is, what it consists of, and fetching
// it. For image.cpp only; its letter says which sources there are and what goes wrong.
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

// The directories of logins, beside the images of all.
inline std::string private_images(const std::string& images_directory) {
  return images_directory + ".private";
}

// A file in the form of containers-auth.json(5) for the programs that ask registries; gone with the object. Its directory is
// made when absent.
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

// What is fetched, and how. `login_file`: "" = this machine's own files say how registries are logged in to.
struct ImageSource {
  std::string name;
  std::string login_file = {};
};

// The layout of "oci:PATH:TAG" below one of the directories, opened beneath it, and the source by which it is reached as
// long as it is open. Nothing, when it lies elsewhere. Errors: invalid: a link is on the way.
struct HeldLayout {
  os::File directory;
  std::string source;
};
Result<std::optional<HeldLayout>> hold_layout(const std::string& source,
                                              const std::vector<std::string>& directories);

// Errors: invalid, when it is no source that we know.
Result<void> check_source(const std::string& source);

// "sha256:" and 64 hex digits.
std::string sha256(std::string_view bytes);

// The digest by which the image is known here, without fetching it.
Result<std::string> digest_of(const ImageSource& source);

// Its layers, the lowest first, as the source has them; empty where only fetching tells.
Result<std::vector<ImageReference>> layers_of(const ImageSource& source);

// A layout holds one image, called "image"; its blobs lie in BLOBS/sha256/, where those that are there already are not
// fetched again. `watch` as Command::watch.
struct LayoutPlace {
  std::string directory;
  std::string blobs;
};
Result<void> fetch(const ImageSource& source, const LayoutPlace& to, const std::function<bool()>& watch);
// Bytes that fetch() has written so far and that are no blob yet.
uint64_t bytes_on_the_way(const LayoutPlace& to);

// Of the fetched image.
struct DescribedImage {
  std::string digest;  // of its manifest
  ImageConfig config;
  std::vector<ImageReference> layers;
};
Result<DescribedImage> describe(const LayoutPlace& layout);

// The error in words of the image, and of the kind that it is.
Error explained(Error error, const std::string& source);

}  // namespace trainyard::containers
