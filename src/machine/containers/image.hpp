// Container images, unpacked once and shared.
//
// A source is "oci:PATH:TAG" (an OCI layout on this machine), "containers-storage:NAME" (podman's and buildah's) or
// "docker://HOST[:PORT]/NAME:TAG" (a registry; "@sha256:.." instead of the tag pins what it is). skopeo fetches it, and
// how registries are reached and logged in to is what its own files say (registries.conf, auth.json, certs.d); one on a
// loopback address may speak plain HTTP. Everything is kept by content below an images directory, made beside and then
// renamed, so it is there whole or not at all, and several hosts that want it at once wait for the first:
//
//   IMAGES/sha256-<digest>/root/       what containers put their writable layer over: never written to
//   IMAGES/sha256-<digest>/image.json  what the image says of itself, and its layers
//   IMAGES/sha256-<digest>.used/       a locked file for each that uses it now
//   IMAGES/layers/<digest>/            a layer, unpacked (image_layer.hpp): roots are hard links to its files
//   IMAGES/blobs/sha256/<digest>       a layer as its registry gave it: what is here is not fetched again
//   IMAGES/names/                      what registries' names last were, for when a registry is away
//
// Threads: callable from anywhere, from several processes at once. Errors: not_found (no such image, no
// tool), invalid or corrupt (it is no image, or not what its digest says), unavailable (the registry), exhausted (disk),
// cancelled (took too long, or was not wanted any more).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "containers/oci_image.hpp"
#include "os/files.hpp"

namespace trainyard::containers {

struct UnpackedImage {
  std::string root;    // directory
  std::string digest;  // "sha256:.."
  ImageConfig config;
  uint32_t user_id = 0;  // config.user, looked up in the image's own /etc/passwd and /etc/group
  uint32_t group_id = 0;
  std::optional<os::FileLock> use;  // as long as it is held, trim_images() leaves the image alone
};

// How far it is. Bytes are those that move: packed ones, of layers that are not here yet.
struct PullProgress {
  enum class Doing { waiting, downloading, unpacking };  // waiting: another one is at the same image
  Doing doing = Doing::waiting;
  uint64_t bytes = 0;
  uint64_t bytes_total = 0;  // 0 = not known
};
// Called several times a second, from the caller's thread; false: leave it.
using PullWatch = std::function<bool(const PullProgress&)>;

// "Downloading the training image: 120 of 480 MiB".
std::string to_words(const PullProgress& progress);

// With which rights an image is fetched.
struct ImageRights {
  struct Login {
    std::string host, username, password;
  };
  // Of the registry; unset: as this machine's own files say. What is fetched with a login lies in a directory of that
  // login, IMAGES.private/<name>/, of the same form: nothing of it serves those that have another login or none, not even
  // a layer of the same digest. The password is in no argument and no message.
  std::optional<Login> login = {};
  // An OCI layout below one of these is opened beneath it: no link is followed, on the way or in the layout.
  std::vector<std::string> oci_directories = {};
};

Result<UnpackedImage> unpack_image(const std::string& source, const std::string& images_directory,
                                   const PullWatch& watch = {}, const ImageRights& rights = {});

// Who is meant inside an unpacked image, or in this machine's own system (root ""): "1000", "nobody", "1000:users".
// Errors: invalid: nobody there has that name; it is no id that a container can have.
Result<UserIds> user_of(const std::string& root, const std::string& user);

// Removes images that nobody uses, the longest unused first, until the directory and those of logins hold at most `bytes_max`; then the
// layers and blobs of no image. Returns the bytes it holds after. While an image is being fetched, layers stay.
Result<uint64_t> trim_images(const std::string& images_directory, uint64_t bytes_max);

}  // namespace trainyard::containers
